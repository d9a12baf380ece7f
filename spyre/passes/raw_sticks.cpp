#include "spyre/passes/raw_sticks.h"

#include <algorithm>
#include <array>
#include <set>

#include "spyre/graph/device_access.h"
#include "spyre/graph/device_op.h"
#include "spyre/passes/move_elements.h"
#include "spyre/passes/move_halves.h"
#include "spyre/passes/node_part.h"

namespace spyre {
namespace {

constexpr const char* kHalf = "half";

bool has_words(const DeviceLayout& layout) {
  const bool words =
      layout.device_dtype == DataFormat::IEEE_FP32 || layout.device_dtype == DataFormat::IEEE_INT32;
  return words && layout.element_arrangement == ElementArrangement::STANDARD;
}

// Sticks are further apart than they are long: rows of one each, that nobody takes for parts of a longer one. Other
// dimensions have room for the sticks of the other end.
std::vector<int64_t> raw_strides(std::vector<int64_t> device_size) {
  for (int64_t& size : device_size) size = whole_words(size);
  device_size.back() *= 4;
  return contiguous_strides(device_size);
}

// Where an access is in the halves of its sticks.
Expr raw_index(const DeviceAccess& access, const std::vector<Loop>& loops) {
  const std::vector<int64_t> size = access.device_size(), stride = raw_strides(size);
  const std::vector<Expr> coordinates = access.coordinates(loops);
  Expr index = Expr::symbol(kHalf) + 2 * coordinates.back();
  for (size_t d = 0; d + 1 < size.size(); ++d) index = index + stride[d] * coordinates[d];
  return index;
}

void make_raw(Buffer& buffer, DeviceLayout layout) {
  layout.device_dtype = DataFormat::SEN169_FP16;
  layout.stride_map = raw_strides(layout.device_size);
  buffer.storage = layout.stride_map.front() * whole_words(layout.device_size.front());
  layout.device_size.back() *= 2;
  buffer.dtype = HostType::kFloat16;
  buffer.size = layout.device_size;
  buffer.stride = layout.stride_map;
  buffer.offset = 0;
  buffer.layout = std::move(layout);
}

// A loop along a stick that ends inside one: its whole sticks, and the rest.
std::optional<std::string> ragged_loop(const Node& node, const Access& access) {
  const int64_t lanes = elems_per_stick(DataFormat::IEEE_FP32);
  for (const ExprTerm& term : access.index.terms()) {
    if (term.kind != AtomKind::kMod) continue;
    const std::set<std::string> symbols = term.inner.symbols();
    for (const Loop& loop : node.loops) {
      if (symbols.contains(loop.name) && loop.extent > lanes && loop.extent % lanes != 0) return loop.name;
    }
  }
  return std::nullopt;
}

void append_parts(Graph& graph, const Node& node) {
  const DeviceOp op = device_op(node);
  std::optional<std::string> ragged = ragged_loop(node, op.inputs[0]);
  if (!ragged) ragged = ragged_loop(node, op.output);
  if (!ragged) {
    graph.nodes.push_back(node);
    return;
  }
  const auto loop =
      std::find_if(node.loops.begin(), node.loops.end(), [&](const Loop& l) { return l.name == ragged; });
  const int64_t rest = loop->extent % elems_per_stick(DataFormat::IEEE_FP32), whole = loop->extent - rest;
  append_parts(graph, part_of(graph, node, *ragged, 0, whole));
  append_parts(graph, part_of(graph, node, *ragged, whole, rest));
}

}  // namespace

std::optional<Graph> raw_sticks(const Graph& graph) {
  Graph raw = graph;
  raw.nodes.clear();
  std::set<BufferId> seen;
  for (const Node& node : graph.nodes) {
    const DeviceOp op = device_op(node);
    if (op.op != "identity" || op.inputs.size() != 1 || !op.indices.empty()) return std::nullopt;
    const std::array<Access, 2> ends = {op.inputs[0], op.output};
    std::array<DeviceLayout, 2> layouts;
    for (size_t i = 0; i < ends.size(); ++i) {
      const Buffer& buffer = graph.buffers[static_cast<size_t>(ends[i].buffer)];
      const Result<DeviceLayout> layout = word_layout(buffer);
      if (graph.is_local(ends[i].buffer) || buffer.fill || !layout.ok() || !has_words(layout.value()))
        return std::nullopt;
      layouts[i] = layout.value();
      if (seen.insert(ends[i].buffer).second)
        make_raw(raw.buffers[static_cast<size_t>(ends[i].buffer)], layouts[i]);
    }
    const std::array<OperandIndex, 2> operands = {
        {{&layouts[0], &ends[0].index}, {&layouts[1], &ends[1].index}}};
    const Result<NormalAccess> access = normalize_access(node.loops, operands);
    if (!access.ok()) return std::nullopt;
    const NormalAccess& normal = access.value();
    Node copy = node;
    copy.loops = normal.loops;
    copy.loops.push_back({.name = kHalf, .extent = 2});
    const Access from{ends[0].buffer, raw_index(normal.operands[0], normal.loops)};
    const Access to{ends[1].buffer, raw_index(normal.operands[1], normal.loops)};
    set_device_op(raw, copy, {.op = "identity", .inputs = {from}, .output = to}, HostType::kFloat16);
    append_parts(raw, copy);
  }
  return raw.nodes.empty() ? std::nullopt : std::optional(std::move(raw));
}

}  // namespace spyre
