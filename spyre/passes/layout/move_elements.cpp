#include "spyre/passes/layout/move_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "spyre/graph/device_graph.h"
#include "spyre/layout/tile_axis.h"
#include "spyre/passes/layout/move_half_words.h"

namespace spyre {
namespace {

constexpr int64_t kMostElements = 1 << 20;

// How an argument lies: loops over all of it, one of them along its sticks, and where an element is in its memory.
struct Walk {
  std::vector<Loop> loops;
  std::vector<int64_t> stride;
  Expr index;
  int64_t elements = 1;

  void add(std::string name, int64_t extent, int64_t step) {
    if (extent == 1) return;
    index = index + step * Expr::symbol(name);
    loops.push_back({.name = std::move(name), .extent = extent});
    stride.push_back(step);
    elements *= extent;
  }
};

// Of a layout of 16-bit elements in the standard order. Dimensions without a step carry data at their start only.
std::optional<Walk> walk_of(const DeviceLayout& layout, int64_t reach) {
  if (layout.element_arrangement != ElementArrangement::STANDARD) return std::nullopt;
  const int64_t lanes = layout.device_size.back(), step = layout.stride_map.back();
  Walk walk;
  int64_t row = step > 0 ? lanes : 1;
  int64_t next = step > 0 ? (reach + step - 1) / step : 1;
  const std::optional<size_t> tile = step > 0 ? tile_axis(layout) : std::nullopt;
  for (size_t d = 0; d + 1 < layout.device_size.size(); ++d) {
    const int64_t size = layout.device_size[d], stride = layout.stride_map[d];
    if (tile == d) {
      row = size * lanes;
    } else if (size > 1 && stride > 0) {
      walk.add(fmt::format("d{}", d), size, stride);
      if (step > 0 && stride > step) next = std::min(next, stride / step);
    } else if (size > 1 && stride == 0) {
      return std::nullopt;
    }
  }
  walk.add("row", std::min(row, next), step);
  return walk;
}

// The extent of a dimension that loops may walk in groups of 32, the words of a stick, to its end.
int64_t whole_words(int64_t extent) {
  const int64_t words = elems_per_stick(DataFormat::IEEE_FP32);
  return extent > words ? round_up(extent, words) : extent;
}

// The extent of a loop, in whole sticks of words where memory has room for them.
int64_t roomy_extent(const Walk& walk, size_t loop, int64_t reach) {
  const int64_t extent = walk.loops[loop].extent, step = walk.stride[loop], whole = whole_words(extent);
  int64_t next = reach;
  for (const int64_t stride : walk.stride) {
    if (stride > step) next = std::min(next, stride);
  }
  return whole * step <= next ? whole : extent;
}

class ElementMover {
 public:
  explicit ElementMover(const DeviceGraph& graph) : graph_(graph) {}

  std::optional<DeviceGraph> run() {
    std::vector<DeviceNode> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const DeviceNode& node : nodes) filled_[node.op.output.buffer] += points_of(node);
    for (const DeviceNode& node : nodes) {
      if (!move(node)) return std::nullopt;
    }
    for (const auto& [target, way] : written_) {
      append(way.walk.loops, {way.elements, way.walk.index}, {target, way.walk.index});
    }
    return std::move(graph_);
  }

 private:
  struct Way {
    Walk walk;
    BufferId elements = -1;
  };

  static int64_t points_of(const DeviceNode& node) {
    int64_t count = 1;
    for (const Loop& loop : node.loops) count *= loop.extent;
    return count;
  }

  bool move(const DeviceNode& node) {
    const DeviceOp& op = node.op;
    const BufferId from = op.inputs[0].buffer, to = op.output.buffer;
    const bool plain = op.op == OpId::identity && op.inputs.size() == 1 && op.indices.empty();
    if (!plain || written_.contains(from) || graph_.buffers[static_cast<size_t>(from)].fill) return false;
    const bool first = !written_.contains(to);
    if (!way_of(read_, from) || !way_of(written_, to)) return false;
    const Way& source = read_[from];
    if (spread_.insert(from).second)
      append(source.walk.loops, {from, source.walk.index}, {source.elements, source.walk.index});
    const Way& target = written_[to];
    if (first && filled_[to] != target.walk.elements)
      append(target.walk.loops, rest_of(to, target), {target.elements, target.walk.index});
    append(node.loops, {source.elements, op.inputs[0].index}, {target.elements, op.output.index});
    return true;
  }

  // What an argument has where no node writes: an input keeps what it had, and of a result that is nobody's.
  Access rest_of(BufferId id, const Way& way) {
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
    if (graph_.is_given(id)) return {id, way.walk.index};
    return {graph_.add_buffer({.name = "zero", .dtype = buffer.dtype, .fill = Fill{}}), Expr()};
  }

  // The buffer of single elements beside an argument, made once.
  bool way_of(std::map<BufferId, Way>& ways, BufferId id) {
    if (ways.contains(id)) return true;
    const Buffer buffer = graph_.buffers[static_cast<size_t>(id)];
    const Result<DeviceLayout> layout = word_layout(buffer);
    if (graph_.is_local(id) || !layout.ok()) return false;
    std::optional<Walk> walk = walk_of(layout.value(), buffer.reach());
    if (!walk || walk->elements > kMostElements) return false;
    Buffer elements{.name = buffer.name + "_elements", .dtype = buffer.dtype, .stride = walk->stride};
    for (size_t i = 0; i < walk->loops.size(); ++i)
      elements.size.push_back(roomy_extent(*walk, i, buffer.reach()));
    ways[id] = {.walk = std::move(*walk), .elements = graph_.add_buffer(std::move(elements))};
    return true;
  }

  void append(std::vector<Loop> loops, const Access& from, const Access& to) {
    const Buffer& target = graph_.buffers[static_cast<size_t>(to.buffer)];
    graph_.nodes.push_back(
        {{.name = fmt::format("{}_{}", target.name, graph_.nodes.size()), .loops = std::move(loops)},
         {.inputs = {from}, .output = to}});
  }

  DeviceGraph graph_;
  std::map<BufferId, Way> read_, written_;
  std::map<BufferId, int64_t> filled_;  // elements that are written
  std::set<BufferId> spread_;           // read into its single elements already
};

}  // namespace

std::optional<DeviceGraph> by_elements(const DeviceGraph& graph) {
  if (graph.nodes.empty()) return std::nullopt;
  return ElementMover(graph).run();
}

}  // namespace spyre
