#include "spyre/passes/layout/insert_copies.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>

#include "spyre/graph/device_graph.h"
#include "spyre/graph/normal_op.h"
#include "spyre/passes/layout/part_of_buffer.h"

namespace spyre {
namespace {

/// What stands in for a buffer where a node reads it in another layout, and which of its elements comes first there.
struct CopiedBuffer {
  BufferId buffer = -1;
  int64_t start = 0;
};

class CopyInserter {
 public:
  CopyInserter(DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
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
    nodes_ = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (at_ = 0; at_ < nodes_.size(); ++at_) {
      redirect(nodes_[at_], choice_.read_as[at_]);
      const BufferId target = nodes_[at_].op.output.buffer;
      graph_.nodes.push_back(nodes_[at_]);
      if (static_cast<size_t>(target) < version_.size()) ++version_[static_cast<size_t>(target)];
    }
  }

 private:
  void redirect(DeviceNode& node, const std::vector<int>& read_as) {
    size_t operand = 0;
    for_each_read(node.op, [&](Access& access) { redirect(access, read_as[operand++]); });
  }

  void redirect(Access& access, int as) {
    const auto id = static_cast<size_t>(access.buffer);
    if (graph_.buffers[id].fill) {
      access.buffer = constant_in(access.buffer, as);
    } else if (as != choice_.layout[id]) {
      const CopiedBuffer copy = copy_in(access.buffer, as);
      access = {copy.buffer, access.index + Expr::constant(-copy.start)};
    }
  }

  BufferId constant_in(BufferId id, int as) {
    Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
    const DeviceLayout& layout = candidates_[static_cast<size_t>(id)][static_cast<size_t>(as)];
    if (!buffer.layout) buffer.layout = layout;
    if (*buffer.layout == layout) return id;
    const auto key = std::make_tuple(id, as, 0);
    if (const auto known = copies_.find(key); known != copies_.end()) return known->second.buffer;
    Buffer twin = buffer;
    twin.layout = layout;
    return (copies_[key] = {graph_.add_buffer(std::move(twin))}).buffer;
  }

  // A copy is good until the buffer is written again.
  CopiedBuffer copy_in(BufferId id, int as) {
    const auto key = std::make_tuple(id, as, version_[static_cast<size_t>(id)]);
    if (const auto known = copies_.find(key); known != copies_.end()) return known->second;
    const Conversion* conversion = conversions_.find(id, choice_.layout[static_cast<size_t>(id)], as);
    SPYRE_CHECK(conversion != nullptr, "the search only chose conversions that exist");
    if (conversion->steps.size() == 1 && !conversion->steps[0].lanes) {
      if (const std::optional<CopiedBuffer> part = copy_part(id, as, conversion->steps[0].to))
        return copies_[key] = *part;
    }
    BufferId from = id;
    for (const ConversionStep& step : conversion->steps)
      from = step.lanes ? copy_lanes(from, step) : copy_elements(from, step.to);
    return copies_[key] = {from, graph_.buffers[static_cast<size_t>(id)].offset};
  }

  // Calls `visit` with each node, its number among the node's operands and the access of what reads the copy, from here to
  // where the buffer is written again.
  template <typename Visit>
  void for_each_reader(BufferId id, int as, const Visit& visit) {
    for (size_t n = at_; n < nodes_.size(); ++n) {
      size_t operand = 0;
      for_each_read(nodes_[n].op, [&](const Access& access) {
        if (access.buffer == id && choice_.read_as[n][operand] == as) visit(nodes_[n], operand, access);
        ++operand;
      });
      if (nodes_[n].op.output.buffer == id) return;
    }
  }

  // None: all of the buffer is read, or the part cannot lie by itself.
  std::optional<CopiedBuffer> copy_part(BufferId id, int as, const DeviceLayout& layout) {
    const Buffer source = graph_.buffers[static_cast<size_t>(id)];
    const BufferPart whole{.low = std::vector<int64_t>(source.size.size(), 0), .size = source.size};
    std::optional<BufferPart> part;
    for_each_reader(id, as, [&](const DeviceNode& node, size_t, const Access& access) {
      const BufferPart read = part_read(source, access.index, node.loops).value_or(whole);
      part = part ? joined(*part, read) : read;
    });
    if (!part) return std::nullopt;
    // Squares of sticks are transposed whole.
    for (const DeviceLayout& lies : {*source.layout, layout}) part = with_whole_sticks(*part, source, lies);
    if (*part == whole) return std::nullopt;
    const std::optional<DeviceLayout> small = layout_of_part(source, layout, *part);
    if (!small) return std::nullopt;
    const CopiedBuffer copy{add_copy(id, *small), source.offset + part->start(source)};
    Buffer& target = graph_.buffers.back();
    target.size = part->size;
    target.storage = 0;
    DeviceNode node = part_node(id, copy);
    if (!fits(node, {&*source.layout, &*small}) || !readers_fit(id, as, copy)) {
      graph_.buffers.pop_back();
      return std::nullopt;
    }
    graph_.nodes.push_back(std::move(node));
    return copy;
  }

  DeviceNode part_node(BufferId from, const CopiedBuffer& copy) const {
    const Buffer& part = graph_.buffers[static_cast<size_t>(copy.buffer)];
    DeviceNode node{{.name = part.name}};
    Expr index;
    for (size_t d = 0; d < part.size.size(); ++d) {
      node.loops.push_back({.name = fmt::format("p{}", d), .extent = part.size[d]});
      index = index + part.stride[d] * Expr::symbol(node.loops.back().name);
    }
    node.op = {.inputs = {{from, index + Expr::constant(copy.start)}}, .output = {copy.buffer, index}};
    return node;
  }

  // As the search asked about the whole copy: each reader beside its result, the other operands out of the question.
  bool readers_fit(BufferId id, int as, const CopiedBuffer& copy) {
    bool fit = true;
    for_each_reader(id, as, [&](DeviceNode node, size_t operand, const Access&) {
      const auto written = static_cast<size_t>(node.op.output.buffer);
      size_t i = 0;
      for_each_read(node.op, [&](Access& access) {
        if (i++ == operand) access = {copy.buffer, access.index + Expr::constant(-copy.start)};
      });
      std::vector<const DeviceLayout*> layouts(i + 1, nullptr);
      layouts[operand] = &*graph_.buffers[static_cast<size_t>(copy.buffer)].layout;
      layouts.back() = &*graph_.buffers[written].layout;
      fit &= fits(node, layouts);
    });
    return fit;
  }

  bool fits(const DeviceNode& node, const std::vector<const DeviceLayout*>& layouts) const {
    return normalize_op(graph_, node, layouts).ok();
  }

  BufferId add_copy(BufferId from, const DeviceLayout& layout) {
    const Buffer& source = graph_.buffers[static_cast<size_t>(from)];
    Buffer copy{.name = source.name + "_restickified",
                .dtype = source.dtype,
                .size = source.size,
                .stride = source.stride,
                .storage = graph_.is_local(from) ? source.storage : 0,
                .layout = layout};
    return graph_.add_buffer(std::move(copy));
  }

  BufferId copy_elements(BufferId from, const DeviceLayout& layout) {
    const BufferId to = add_copy(from, layout);
    graph_.nodes.push_back(
        copy_node(graph_, from, to, *graph_.buffers[static_cast<size_t>(from)].layout, layout));
    return to;
  }

  // The copy and its source get a second name each, under which the nodes of the permutation know their memory.
  BufferId copy_lanes(BufferId from, const ConversionStep& step) {
    const LanePermutation& lanes = *step.lanes;
    const BufferId to = add_copy(from, step.to);
    std::vector<BufferId> known(lanes.graph.buffers.size());
    for (size_t i = 0; i < known.size(); ++i) {
      Buffer buffer = lanes.graph.buffers[i];
      const bool read = static_cast<BufferId>(i) == lanes.from,
                 written = static_cast<BufferId>(i) == lanes.to;
      buffer.is_input = false;
      if (read || written) buffer.memory_of = read ? from : to;
      const std::string& owner = graph_.buffers[static_cast<size_t>(written ? to : from)].name;
      buffer.name = owner + (written ? "_lanes" : "_" + buffer.name);
      known[i] = graph_.add_buffer(std::move(buffer));
    }
    for (DeviceNode node : lanes.graph.nodes) {
      for_each_access(node.op,
                      [&](Access& access) { access.buffer = known[static_cast<size_t>(access.buffer)]; });
      node.name = graph_.buffers[static_cast<size_t>(node.op.output.buffer)].name;
      graph_.nodes.push_back(std::move(node));
    }
    return to;
  }

  DeviceGraph& graph_;
  const std::vector<std::vector<DeviceLayout>>& candidates_;
  Conversions& conversions_;
  const LayoutChoice& choice_;
  std::vector<DeviceNode> nodes_;  // those after `at_` still read what they read before
  size_t at_ = 0;
  std::vector<int> version_;  // how often each buffer was written so far
  std::map<std::tuple<BufferId, int, int>, CopiedBuffer> copies_;
};

}  // namespace

void insert_copies(DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
                   Conversions& conversions, const LayoutChoice& choice) {
  CopyInserter(graph, candidates, conversions, choice).run();
}

}  // namespace spyre
