#include "spyre/passes/bundle/reorder/dependences.h"

#include <algorithm>
#include <set>

namespace spyre {
namespace {

struct Touched {
  std::set<BufferId> reads;
  BufferId writes = -1;
  bool input = false, mutation = false;  // of any graph input
};

std::vector<Touched> touched_by_node(const DeviceGraph& graph) {
  const auto is_input = [&](BufferId id) { return graph.buffers[static_cast<size_t>(id)].is_input; };
  std::vector<Touched> all;
  for (const DeviceNode& node : graph.nodes) {
    Touched touched{.reads = {}, .writes = graph.owner(node.op.output.buffer)};
    for_each_read(node.op, [&](const Access& access) { touched.reads.insert(graph.owner(access.buffer)); });
    touched.mutation = is_input(touched.writes);
    touched.input = touched.mutation || std::any_of(touched.reads.begin(), touched.reads.end(), is_input);
    all.push_back(std::move(touched));
  }
  return all;
}

bool waits(const Touched& later, const Touched& earlier) {
  if ((later.mutation && earlier.input) || (later.input && earlier.mutation)) return true;
  return later.writes == earlier.writes || later.reads.contains(earlier.writes) ||
         earlier.reads.contains(later.writes);
}

}  // namespace

Dependences dependences_of(const DeviceGraph& graph) {
  const std::vector<Touched> touched = touched_by_node(graph);
  Dependences dependences;
  dependences.before.resize(touched.size());
  dependences.after.resize(touched.size());
  for (size_t later = 0; later < touched.size(); ++later) {
    for (size_t earlier = 0; earlier < later; ++earlier) {
      if (!waits(touched[later], touched[earlier])) continue;
      dependences.before[later].push_back(earlier);
      dependences.after[earlier].push_back(later);
    }
  }
  return dependences;
}

bool keeps(const Dependences& dependences, const std::vector<size_t>& order) {
  std::vector<size_t> position(order.size());
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  for (size_t node = 0; node < order.size(); ++node) {
    for (const size_t earlier : dependences.before[node]) {
      if (position[earlier] >= position[node]) return false;
    }
  }
  return true;
}

}  // namespace spyre
