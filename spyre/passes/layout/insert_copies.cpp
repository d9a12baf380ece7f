#include "spyre/passes/layout/insert_copies.h"

#include <map>
#include <tuple>

#include "spyre/graph/device_graph.h"

namespace spyre {
namespace {

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
    std::vector<DeviceNode> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      redirect(nodes[n], choice_.read_as[n]);
      const BufferId target = nodes[n].op.output.buffer;
      graph_.nodes.push_back(std::move(nodes[n]));
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
    for (const ConversionStep& step : conversion->steps)
      from = step.lanes ? copy_lanes(from, step) : copy_elements(from, step.to);
    return copies_[key] = from;
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
  std::vector<int> version_;  // how often each buffer was written so far
  std::map<std::tuple<BufferId, int, int>, BufferId> copies_;
};

}  // namespace

void insert_copies(DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
                   Conversions& conversions, const LayoutChoice& choice) {
  CopyInserter(graph, candidates, conversions, choice).run();
}

}  // namespace spyre
