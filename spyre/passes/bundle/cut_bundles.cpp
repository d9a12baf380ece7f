#include "spyre/passes/bundle/cut_bundles.h"

#include <algorithm>
#include <map>

namespace spyre {

void cut_bundles(DeviceGraph& graph, int64_t operations) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    graph.nodes[n].bundle = operations == 0 ? 0 : static_cast<int64_t>(n) / operations;
  }
}

int64_t bundle_count(const DeviceGraph& graph) {
  return graph.nodes.empty() ? 1 : graph.nodes.back().bundle + 1;
}

std::vector<bool> non_terminal_bundles(const DeviceGraph& graph) {
  std::vector<bool> marks(static_cast<size_t>(bundle_count(graph)), false);
  std::map<BufferId, int64_t> made_in;
  const auto touch = [&](BufferId id, int64_t bundle) {
    if (!graph.buffers[static_cast<size_t>(id)].in_lx()) return;
    const int64_t first = made_in.emplace(id, bundle).first->second;
    std::fill(marks.begin() + first, marks.begin() + bundle, true);
  };
  for (const DeviceNode& node : graph.nodes) {
    for_each_access(node.op, [&](const Access& access) { touch(access.buffer, node.bundle); });
  }
  return marks;
}

}  // namespace spyre
