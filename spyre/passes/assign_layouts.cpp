#include "spyre/passes/assign_layouts.h"

#include <algorithm>
#include <map>

#include "spyre/graph/normal_op.h"
#include "spyre/passes/layout_candidates.h"
#include "spyre/passes/move_elements.h"
#include "spyre/passes/move_halves.h"
#include "spyre/passes/pad_steps.h"
#include "spyre/passes/raw_sticks.h"
#include "spyre/passes/whole_converted_rows.h"

namespace spyre {
namespace {

// Rewrites the graph after a choice: layouts on buffers, copies before the nodes that need them.
class CopyInserter {
 public:
  CopyInserter(Graph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
               Conversions& conversions, const LayoutChoice& choice)
      : graph_(graph),
        candidates_(candidates),
        conversions_(conversions),
        choice_(choice),
        version_(graph.buffers.size(), 0) {}

  void run() {
    for (size_t id = 0; id < version_.size(); ++id) {
      if (choice_.layout[id] >= 0)
        graph_.buffers[id].layout = candidates_[id][static_cast<size_t>(choice_.layout[id])];
    }
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      redirect(nodes[n], choice_.read_as[n]);
      const BufferId target = nodes[n].target;
      graph_.nodes.push_back(std::move(nodes[n]));
      if (static_cast<size_t>(target) < version_.size()) ++version_[static_cast<size_t>(target)];
    }
  }

 private:
  void redirect(Node& node, const std::vector<int>& read_as) {
    DeviceOp op = device_op(node);
    size_t operand = 0;
    for (auto& [name, access] : op.indices) redirect(access, read_as[operand++]);
    for (Access& access : op.inputs) redirect(access, read_as[operand++]);
    set_device_op(graph_, node, op, graph_.buffers[static_cast<size_t>(op.output.buffer)].dtype);
  }

  void redirect(Access& access, int as) {
    const auto id = static_cast<size_t>(access.buffer);
    if (graph_.buffers[id].fill) {
      access.buffer = constant_in(access.buffer, as);
    } else if (as != choice_.layout[id]) {
      access.index = access.index + Expr::constant(-graph_.buffers[id].offset);
      access.buffer = copy_in(access.buffer, as);
    }
  }

  BufferId constant_in(BufferId id, int as) {
    Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
    const DeviceLayout& layout = candidates_[static_cast<size_t>(id)][static_cast<size_t>(as)];
    if (!buffer.layout) buffer.layout = layout;
    if (*buffer.layout == layout) return id;
    const auto key = std::make_tuple(id, as, 0);
    if (const auto known = copies_.find(key); known != copies_.end()) return known->second;
    Buffer twin = buffer;
    twin.layout = layout;
    return copies_[key] = graph_.add_buffer(std::move(twin));
  }

  // A copy is good until the buffer is written again.
  BufferId copy_in(BufferId id, int as) {
    const auto key = std::make_tuple(id, as, version_[static_cast<size_t>(id)]);
    if (const auto known = copies_.find(key); known != copies_.end()) return known->second;
    const Conversion* conversion = conversions_.find(id, choice_.layout[static_cast<size_t>(id)], as);
    SPYRE_CHECK(conversion != nullptr, "the search only chose conversions that exist");
    BufferId from = id;
    for (const DeviceLayout& step : conversion->steps) {
      const Buffer& source = graph_.buffers[static_cast<size_t>(from)];
      Buffer copy{.name = source.name + "_turned",
                  .dtype = source.dtype,
                  .size = source.size,
                  .stride = source.stride,
                  .storage = graph_.is_local(from) ? source.storage : 0,
                  .layout = step};
      const BufferId to = graph_.add_buffer(std::move(copy));
      graph_.nodes.push_back(
          copy_node(graph_, from, to, *graph_.buffers[static_cast<size_t>(from)].layout, step));
      from = to;
    }
    return copies_[key] = from;
  }

  Graph& graph_;
  const std::vector<std::vector<DeviceLayout>>& candidates_;
  Conversions& conversions_;
  const LayoutChoice& choice_;
  std::vector<int> version_;  // how often each buffer was written so far
  std::map<std::tuple<BufferId, int, int>, BufferId> copies_;
};

Status assign(Graph& graph, const LayoutSearchOptions& options, WovenResults woven, Weaving weaving) {
  SPYRE_ASSIGN_OR_RETURN(const auto candidates, layout_candidates(graph, woven, weaving));
  const Graph before = graph;
  Conversions conversions(before, candidates, weaving);
  SPYRE_ASSIGN_OR_RETURN(const LayoutChoice choice, choose_layouts(before, candidates, conversions, options));
  CopyInserter(graph, candidates, conversions, choice).run();
  return Status();
}

// Which values of a graph get rows of whole sticks.
struct WayToWholeRows {
  std::optional<RowsOf> widened;
  bool narrowed = false, inputs = false;
  Columns columns = Columns::kToo;
  std::vector<size_t> multiplied = {};  // operands of products
};

bool multiplies(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return device_op(node).is_matmul(); });
}

// The ways to give rows of whole sticks to a graph that has others, fewest copies first.
std::vector<WayToWholeRows> ways_to_make_rows_whole(const Graph& graph, Weaving weaving) {
  const bool narrowed = narrows_ragged_rows(graph);
  std::vector<WayToWholeRows> ways;
  if (narrowed && multiplies(graph)) {
    for (const auto& operands : std::vector<std::vector<size_t>>{{0}, {1}, {0, 1}})
      ways.push_back({.multiplied = operands});
  }
  if (narrowed) ways.push_back({.narrowed = true});
  if (weaving == Weaving::kByNarrowing) return ways;
  if (reads_woven_ragged_rows(graph)) ways.push_back({.narrowed = narrowed, .inputs = true});
  for (const bool both : {false, true}) {
    for (const RowsOf rows : {RowsOf::kSource, RowsOf::kResult}) {
      if (widens_ragged_rows(graph, rows) && (narrowed || !both))
        ways.push_back({.widened = rows, .narrowed = both});
    }
  }
  if (narrowed && widens_ragged_rows(graph, RowsOf::kSource))
    ways.push_back({.widened = RowsOf::kSource, .narrowed = true, .columns = Columns::kNot});
  return ways;
}

// Tries a graph as it is, then with whole rows where it converts ragged ones.
Status assign_rows(Graph& graph, const LayoutSearchOptions& options, Weaving weaving) {
  const std::vector<WayToWholeRows> ways = ways_to_make_rows_whole(graph, weaving);
  if (ways.empty()) return assign(graph, options, WovenResults::kAny, weaving);
  // What is made of 32-bit floats goes on beside them, and widens back into their order only if it is woven.
  const bool floats = std::any_of(graph.buffers.begin(), graph.buffers.end(), [](const Buffer& buffer) {
    return buffer.is_input && buffer.dtype == HostType::kFloat32;
  });
  const WovenResults woven = floats ? WovenResults::kAny : WovenResults::kWholeSticks;
  // Each attempt moves more, or leaves more to the reader, than the one before.
  if (assign(graph, options, woven, weaving).ok()) return Status();
  for (const WayToWholeRows& way : ways) {
    Graph whole = graph;
    if (way.widened) make_widened_rows_whole(whole, *way.widened);
    for (const size_t operand : way.multiplied) make_multiplied_rows_whole(whole, operand);
    if (way.narrowed) make_narrowed_rows_whole(whole, way.columns);
    if (way.inputs) make_woven_inputs_whole(whole);
    if (!assign(whole, options, woven, weaving).ok()) continue;
    graph = std::move(whole);
    return Status();
  }
  return assign(graph, options, WovenResults::kAny, weaving);
}

bool widens(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return device_op(node).op == "dl16tofp32"; });
}

}  // namespace

Status assign_layouts(Graph& graph, const LayoutSearchOptions& options) {
  Status status = assign_rows(graph, options, Weaving::kByNarrowing);
  if (status.ok()) return status;
  // What is widened beside 32-bit values from elsewhere has to be woven first, and what is woven put in
  // order.
  const bool weaves = widens(graph) || reads_woven_ragged_rows(graph);
  if (weaves && assign_rows(graph, options, Weaving::kByCopies).ok()) return Status();
  const auto fits = [&](std::optional<Graph> other) {
    const bool laid_out = other && assign_rows(*other, options, Weaving::kByNarrowing).ok();
    if (laid_out) graph = std::move(*other);
    return laid_out;
  };
  if (fits(pad_steps(graph))) return Status();
  const auto takes = [&](const std::optional<Graph>& other) {
    return other && (fits(other) || fits(pad_steps(*other)));
  };
  const std::optional<Graph> halves = in_halves(graph);
  if (takes(halves)) return Status();
  const std::optional<Graph> elements = by_elements(graph);
  const std::optional<Graph> raw = raw_sticks(graph);
  const bool moved = (elements && (takes(elements) || takes(in_halves(*elements)))) ||
                     (halves && takes(by_elements(*halves))) || (raw && takes(by_elements(*raw)));
  return moved ? Status() : status;
}

}  // namespace spyre
