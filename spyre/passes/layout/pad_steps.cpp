#include "spyre/passes/layout/pad_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "spyre/graph/device_graph.h"
#include "spyre/passes/divide/node_part.h"

namespace spyre {
namespace {

// A window of more parts is left to others: each part is an operation.
constexpr int64_t kMostWindowParts = 32;

// Dimensions of a buffer that lies whole in its memory, the one that steps furthest first.
struct Dims {
  std::vector<int64_t> size, stride;
};

std::optional<Dims> dims_of(const Buffer& buffer) {
  if (buffer.offset != 0 || buffer.fill || buffer.reach() != buffer.elements()) return std::nullopt;
  std::vector<size_t> order;
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.size[d] != 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return buffer.stride[a] > buffer.stride[b]; });
  Dims dims;
  for (const size_t d : order) {
    dims.size.push_back(buffer.size[d]);
    dims.stride.push_back(buffer.stride[d]);
  }
  if (dims.stride != contiguous_strides(dims.size)) return std::nullopt;
  return dims;
}

// An index as one position in each dimension.
struct Position {
  std::vector<Expr> at;             // a sum of loops in steps
  std::vector<int64_t> step, last;  // the widest step, and where the loops end
  struct Walk {
    size_t dim;
    const Loop* loop;
    int64_t step;
  };
  std::vector<Walk> walks;
};

std::optional<Position> position_of(const Expr& index, const Dims& dims, const std::vector<Loop>& loops) {
  const size_t rank = dims.size.size();
  Position position{
      std::vector<Expr>(rank), std::vector<int64_t>(rank, 1), std::vector<int64_t>(rank, 0), {}};
  int64_t offset = index.constant_term();
  if (offset < 0) return std::nullopt;
  for (size_t d = 0; d < rank; ++d) {
    position.last[d] = offset / dims.stride[d];
    position.at[d] = Expr::constant(position.last[d]);
    offset %= dims.stride[d];
  }
  for (const ExprTerm& term : index.terms()) {
    const auto loop =
        std::find_if(loops.begin(), loops.end(), [&](const Loop& l) { return l.name == term.name; });
    if (term.kind != AtomKind::kSymbol || term.coefficient <= 0 || loop == loops.end()) return std::nullopt;
    const auto stride = std::find_if(dims.stride.begin(), dims.stride.end(),
                                     [&](int64_t s) { return term.coefficient % s == 0; });
    if (stride == dims.stride.end()) return std::nullopt;
    const auto d = static_cast<size_t>(stride - dims.stride.begin());
    const int64_t step = term.coefficient / *stride;
    position.at[d] = position.at[d] + step * Expr::symbol(term.name);
    position.step[d] = std::max(position.step[d], step);
    position.last[d] += step * (loop->extent - 1);
    position.walks.push_back({d, &*loop, step});
  }
  for (size_t d = 0; d < rank; ++d) {
    if (position.last[d] >= dims.size[d]) return std::nullopt;
  }
  return position;
}

// A loop that walks further than the step of another along the same dimension: windows of 3 positions, 2
// apart. It is cut where the next window begins.
struct Overlap {
  std::string loop;
  int64_t extent = 0, inside = 0;  // how far it runs, and how much of it before the next window
};

std::optional<Overlap> overlap_in(const DeviceGraph& graph, const DeviceNode& node) {
  for (const Access& access : node.op.inputs) {
    const std::optional<Dims> dims = dims_of(graph.buffers[static_cast<size_t>(access.buffer)]);
    const std::optional<Position> position =
        dims ? position_of(access.index, *dims, node.loops) : std::nullopt;
    if (!position) continue;
    for (const auto& [dim, loop, step] : position->walks) {
      for (const auto& [other_dim, other, other_step] : position->walks) {
        const bool further =
            std::tie(other_step, other->extent, other->name) > std::tie(step, loop->extent, loop->name);
        const int64_t inside = (other_step - 1) / step + 1;
        const int64_t parts = ceil_div(loop->extent, inside);
        if (other_dim == dim && further && parts > 1 && parts <= kMostWindowParts && !loop->reduced)
          return Overlap{loop->name, loop->extent, inside};
      }
    }
  }
  return std::nullopt;
}

std::vector<DeviceNode> without_overlaps(const DeviceGraph& graph, const DeviceNode& node) {
  const std::optional<Overlap> overlap = overlap_in(graph, node);
  if (!overlap) return {node};
  std::vector<DeviceNode> parts;
  for (int64_t begin = 0; begin < overlap->extent; begin += overlap->inside) {
    const int64_t extent = std::min(overlap->inside, overlap->extent - begin);
    for (DeviceNode& part : without_overlaps(graph, part_of(node, overlap->loop, begin, extent))) {
      if (begin > 0) part.name += fmt::format("_{}", begin);
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

class StepPadder {
 public:
  explicit StepPadder(const DeviceGraph& graph) : graph_(graph), written_(graph.buffers.size(), 0) {}

  std::optional<DeviceGraph> run() {
    std::vector<DeviceNode> nodes;
    for (const DeviceNode& node : graph_.nodes) {
      std::vector<DeviceNode> parts = without_overlaps(graph_, node);
      changed_ |= parts.size() > 1;
      std::move(parts.begin(), parts.end(), std::back_inserter(nodes));
    }
    graph_.nodes.clear();
    for (DeviceNode& node : nodes) {
      DeviceOp& op = node.op;
      for_each_read(op, [&](Access& access) { redirect(access, node.loops); });
      const BufferId target = op.output.buffer;
      const auto id = static_cast<size_t>(target);
      if (graph_.is_given(target) || written_[id] > 0) redirect(op.output, node.loops);
      const BufferId room = op.output.buffer;
      graph_.nodes.push_back(std::move(node));
      ++written_[id];
      if (room != target) {
        const Dims dims = *dims_of(graph_.buffers[id]);
        copy(dims.size, room, graph_.buffers[static_cast<size_t>(room)].stride, target, dims.stride);
      }
    }
    return changed_ ? std::optional(std::move(graph_)) : std::nullopt;
  }

 private:
  void redirect(Access& access, const std::vector<Loop>& loops) {
    const std::optional<Dims> dims = dims_of(graph_.buffers[static_cast<size_t>(access.buffer)]);
    const std::optional<Position> position = dims ? position_of(access.index, *dims, loops) : std::nullopt;
    if (!position) return;
    std::vector<int64_t> size = dims->size;
    for (size_t d = 0; d < size.size(); ++d) size[d] = round_up(size[d], position->step[d]);
    if (size == dims->size) return;
    access.buffer = padded(access.buffer, *dims, size);
    const std::vector<int64_t>& stride = graph_.buffers[static_cast<size_t>(access.buffer)].stride;
    access.index = Expr();
    for (size_t d = 0; d < size.size(); ++d) access.index = access.index + stride[d] * position->at[d];
    changed_ = true;
  }

  // The copy with room behind its dimensions, good until the buffer is written again.
  BufferId padded(BufferId id, const Dims& dims, const std::vector<int64_t>& size) {
    const auto key = std::make_tuple(id, size, written_[static_cast<size_t>(id)]);
    if (const auto known = padded_.find(key); known != padded_.end()) return known->second;
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
    Buffer room{.name = buffer.name + "_stepped",
                .dtype = buffer.dtype,
                .size = size,
                .stride = contiguous_strides(size)};
    const BufferId to = graph_.add_buffer(std::move(room));
    copy(dims.size, id, dims.stride, to, contiguous_strides(size));
    return padded_[key] = to;
  }

  // What lies at the start of dimensions that may be longer.
  void copy(const std::vector<int64_t>& size, BufferId from, const std::vector<int64_t>& from_stride,
            BufferId to, const std::vector<int64_t>& to_stride) {
    const Buffer& target = graph_.buffers[static_cast<size_t>(to)];
    DeviceNode node{{.name = fmt::format("{}_{}", target.name, graph_.nodes.size())}};
    Access read{from, Expr()}, write{to, Expr()};
    for (size_t d = 0; d < size.size(); ++d) {
      const std::string name = fmt::format("d{}", d);
      node.loops.push_back({.name = name, .extent = size[d]});
      read.index = read.index + from_stride[d] * Expr::symbol(name);
      write.index = write.index + to_stride[d] * Expr::symbol(name);
    }
    node.op = {.inputs = {read}, .output = write};
    graph_.nodes.push_back(std::move(node));
  }

  DeviceGraph graph_;
  std::vector<int> written_;  // how often each buffer was written so far
  std::map<std::tuple<BufferId, std::vector<int64_t>, int>, BufferId> padded_;
  bool changed_ = false;
};

}  // namespace

std::optional<DeviceGraph> pad_steps(const DeviceGraph& graph) {
  return StepPadder(graph).run();
}

}  // namespace spyre
