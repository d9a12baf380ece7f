#include "spyre/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace spyre {

int64_t Buffer::elements() const {
  int64_t n = 1;
  for (const int64_t s : size) n *= s;
  return n;
}

int64_t Buffer::reach() const {
  if (storage > 0) return storage;
  int64_t last = offset;
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] == 0) return 0;
    last += (size[i] - 1) * stride[i];
  }
  return last + 1;
}

ErrorNode origin_of(const NodeHead& node) {
  return {.name = node.origin.empty() ? node.name : node.origin, .aten = node.aten, .source = node.source};
}

void make_step_of(const NodeHead& node, NodeHead& step) {
  const ErrorNode origin = origin_of(node);
  step.aten = origin.aten;
  step.source = origin.source;
  step.origin = step.name == origin.name ? "" : origin.name;
}

std::optional<BufferId> GraphBuffers::find(std::string_view buffer_name) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].name == buffer_name) return static_cast<BufferId>(i);
  }
  return std::nullopt;
}

BufferId GraphBuffers::value_of(ExtentId extent) const {
  const auto holds = std::find_if(buffers.begin(), buffers.end(),
                                  [&](const Buffer& buffer) { return buffer.value_of == extent; });
  SPYRE_CHECK(extent != kFixed && holds != buffers.end(),
              "verified: every extent has an input that holds it");
  return static_cast<BufferId>(holds - buffers.begin());
}

BufferId GraphBuffers::add_buffer(Buffer buffer) {
  const std::string wanted = buffer.name;
  for (int number = 1; find(buffer.name); ++number) buffer.name = fmt::format("{}_{}", wanted, number);
  buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(buffers.size()) - 1;
}

bool GraphBuffers::is_result(BufferId id) const {
  return std::find(results.begin(), results.end(), id) != results.end();
}

BufferId GraphBuffers::owner(BufferId id) const {
  const BufferId named = buffers[static_cast<size_t>(id)].memory_of;
  return named < 0 ? id : owner(named);
}

bool GraphBuffers::is_given(BufferId id) const {
  return buffers[static_cast<size_t>(owner(id))].is_input;
}

bool GraphBuffers::is_local(BufferId id) const {
  id = owner(id);
  const Buffer& buffer = buffers[static_cast<size_t>(id)];
  return !buffer.is_input && !buffer.fill && !is_result(id);
}

bool is_product(const Instruction& instruction) {
  return instruction.op == BodyOp::dot;
}

namespace {

// Whether a truth value comes out, or the position of an element; else what goes in decides.
std::optional<HostType> own_type(BodyOp op) {
  switch (op) {
    case BodyOp::all:
    case BodyOp::any:
    case BodyOp::eq:
    case BodyOp::ge:
    case BodyOp::gt:
    case BodyOp::isinf:
    case BodyOp::isnan:
    case BodyOp::le:
    case BodyOp::logical_and:
    case BodyOp::logical_not:
    case BodyOp::logical_or:
    case BodyOp::logical_xor:
    case BodyOp::lt:
    case BodyOp::ne:
      return HostType::kBool;
    case BodyOp::argmax:
    case BodyOp::argmin:
      return HostType::kInt64;
    default:
      return std::nullopt;
  }
}

}  // namespace

HostType result_type(BodyOp op, const std::vector<HostType>& operands) {
  if (const std::optional<HostType> own = own_type(op)) return *own;
  const auto rank = [](HostType type) {
    switch (type) {
      case HostType::kBool:
        return 0;
      case HostType::kUInt8:
      case HostType::kInt8:
        return 1;
      case HostType::kInt16:
        return 2;
      case HostType::kInt32:
        return 3;
      case HostType::kInt64:
        return 4;
      case HostType::kFloat8E4M3FN:
      case HostType::kFloat8E5M2FNUZ:
        return 5;
      case HostType::kFloat16:
      case HostType::kBFloat16:
        return 6;
      case HostType::kFloat32:
        return 7;
    }
    return 7;
  };
  HostType best = HostType::kBool;
  // The condition of a `where` chooses, it does not take part.
  for (size_t i = op == BodyOp::where ? 1 : 0; i < operands.size(); ++i) {
    const bool mixed_halves = rank(operands[i]) == 6 && rank(best) == 6 && operands[i] != best;
    if (mixed_halves) {
      best = HostType::kFloat32;
    } else if (rank(operands[i]) > rank(best)) {
      best = operands[i];
    }
  }
  return best;
}

Expr row_major(const std::vector<Loop>& loops) {
  Expr index;
  for (const Loop& loop : loops) index = loop.extent * index + Expr::symbol(loop.name);
  return index;
}

namespace {

using Ranges = std::map<std::string, int64_t, std::less<>>;

IndexRange range_over(const Expr& index, const Ranges& extents) {
  IndexRange range{index.constant_term(), index.constant_term()};
  for (const ExprTerm& term : index.terms()) {
    IndexRange atom;
    switch (term.kind) {
      case AtomKind::kSymbol: {
        const auto extent = extents.find(term.name);
        atom.high = extent == extents.end() ? 0 : extent->second - 1;
        break;
      }
      case AtomKind::kFloorDiv: {
        const IndexRange inner = range_over(term.inner, extents);
        atom = {floor_quotient(inner.low, term.divisor), floor_quotient(inner.high, term.divisor)};
        break;
      }
      case AtomKind::kMod: {
        const IndexRange inner = range_over(term.inner, extents);
        const bool whole = inner.low >= 0 && inner.high < term.divisor;
        atom = whole ? inner : IndexRange{0, term.divisor - 1};
        break;
      }
      case AtomKind::kIndirect:
        break;
    }
    if (term.coefficient < 0) std::swap(atom.low, atom.high);
    range.low += term.coefficient * atom.low;
    range.high += term.coefficient * atom.high;
  }
  return range;
}

}  // namespace

IndexRange range_of(const Expr& index, const std::vector<Loop>& loops) {
  Ranges extents;
  for (const Loop& loop : loops) extents[loop.name] = loop.extent;
  return range_over(index, extents);
}

}  // namespace spyre
