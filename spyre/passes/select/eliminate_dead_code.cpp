#include "spyre/passes/select/eliminate_dead_code.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace spyre {
namespace {

// What a node of either graph reads and writes, as places to change.
template <class Visit>
void for_each_read(Node& node, Visit&& visit) {
  for (Instruction& instruction : node.body) {
    if (instruction.is_load()) visit(instruction.buffer);
  }
}
template <class Visit>
void for_each_read(DeviceNode& node, Visit&& visit) {
  spyre::for_each_read(node.op, [&](Access& access) { visit(access.buffer); });
}
template <class Visit>
void for_each_index(Node& node, Visit&& visit) {
  visit(node.target_index);
  for (Instruction& instruction : node.body) visit(instruction.index);
}
template <class Visit>
void for_each_index(DeviceNode& node, Visit&& visit) {
  for_each_access(node.op, [&](Access& access) { visit(access.index); });
}
BufferId& target_of(Node& node) {
  return node.target;
}
BufferId& target_of(DeviceNode& node) {
  return node.op.output.buffer;
}
const Expr& store_of(const Node& node) {
  return node.target_index;
}
const Expr& store_of(const DeviceNode& node) {
  return node.op.output.index;
}

template <class GraphType>
void drop_unused_buffers(GraphType& graph) {
  std::vector<bool> used(graph.buffers.size(), false);
  for (auto& node : graph.nodes) {
    used[static_cast<size_t>(target_of(node))] = true;
    for_each_read(node, [&](BufferId id) { used[static_cast<size_t>(id)] = true; });
  }
  for (const BufferId id : graph.results) used[static_cast<size_t>(id)] = true;
  for (size_t id = graph.buffers.size(); id-- > 0;) {
    if (used[id] && graph.buffers[id].memory_of >= 0)
      used[static_cast<size_t>(graph.buffers[id].memory_of)] = true;
  }
  std::vector<BufferId> renumbered(graph.buffers.size(), -1);
  std::vector<Buffer> kept;
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    if (!used[id] && !graph.buffers[id].is_input) continue;
    renumbered[id] = static_cast<BufferId>(kept.size());
    kept.push_back(std::move(graph.buffers[id]));
    BufferId& owner = kept.back().memory_of;
    if (owner >= 0) owner = renumbered[static_cast<size_t>(owner)];
  }
  graph.buffers = std::move(kept);
  const auto renumber = [&](BufferId& id) { id = renumbered[static_cast<size_t>(id)]; };
  for (auto& node : graph.nodes) {
    renumber(target_of(node));
    for_each_read(node, renumber);
  }
  for (BufferId& id : graph.results) id = renumbered[static_cast<size_t>(id)];
}

template <class NodeType>
void forget_single_steps(NodeType& node) {
  std::set<std::string> single;
  for (const Loop& loop : node.loops) {
    if (loop.extent == 1) single.insert(loop.name);
  }
  if (single.empty()) return;
  for_each_index(node, [&](Expr& index) { index = at_zero(index, single); });
}

// Whether a node writes every element of its buffer, so that nothing written before it is left.
bool writes_all(const NodeHead& node, const Expr& store, const Buffer& buffer) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // of the loops that move the store: by how much, how often
  for (const Loop& loop : node.loops) {
    if (!loop.reduced && loop.extent > 1) steps.emplace_back(store.coefficient(loop.name), loop.extent);
  }
  std::sort(steps.begin(), steps.end());
  int64_t written = 1;
  for (const auto& [step, extent] : steps) {
    if (step != written) return false;
    written *= extent;
  }
  // Each loop is one term: more terms are quotients, remainders, or positions that an index tensor gives.
  return written == buffer.reach() && store.terms().size() == steps.size() && store.constant_term() == 0;
}

template <class GraphType>
void eliminate(GraphType& graph) {
  for (auto& node : graph.nodes) forget_single_steps(node);
  std::vector<bool> needed(graph.buffers.size(), false);
  for (size_t id = 0; id < graph.buffers.size(); ++id)
    needed[id] = !graph.is_local(static_cast<BufferId>(id));
  decltype(graph.nodes) live;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto target = static_cast<size_t>(graph.owner(target_of(*node)));
    if (!needed[target]) continue;
    const Buffer& buffer = graph.buffers[target];
    const bool by_name = graph.buffers[static_cast<size_t>(target_of(*node))].memory_of < 0;
    needed[target] = buffer.is_input || !by_name || !writes_all(*node, store_of(*node), buffer);
    for_each_read(*node, [&](BufferId id) { needed[static_cast<size_t>(graph.owner(id))] = true; });
    live.push_back(std::move(*node));
  }
  std::reverse(live.begin(), live.end());
  graph.nodes = std::move(live);
  drop_unused_buffers(graph);
}

}  // namespace

void eliminate_dead_code(Graph& graph) {
  eliminate(graph);
}

void eliminate_dead_code(DeviceGraph& graph) {
  eliminate(graph);
}

}  // namespace spyre
