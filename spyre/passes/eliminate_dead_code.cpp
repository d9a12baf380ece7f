#include "spyre/passes/eliminate_dead_code.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace spyre {
namespace {

void drop_unused_buffers(Graph& graph) {
  std::vector<bool> used(graph.buffers.size(), false);
  for (const Node& node : graph.nodes) {
    used[static_cast<size_t>(node.target)] = true;
    for (const Instruction& instruction : node.body) {
      if (instruction.is_load()) used[static_cast<size_t>(instruction.buffer)] = true;
    }
  }
  for (const BufferId id : graph.results) used[static_cast<size_t>(id)] = true;
  std::vector<BufferId> renumbered(graph.buffers.size(), -1);
  std::vector<Buffer> kept;
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    if (!used[id] && !graph.buffers[id].is_input) continue;
    renumbered[id] = static_cast<BufferId>(kept.size());
    kept.push_back(std::move(graph.buffers[id]));
  }
  graph.buffers = std::move(kept);
  for (Node& node : graph.nodes) {
    node.target = renumbered[static_cast<size_t>(node.target)];
    for (Instruction& instruction : node.body) {
      if (instruction.is_load()) instruction.buffer = renumbered[static_cast<size_t>(instruction.buffer)];
    }
  }
  for (BufferId& id : graph.results) id = renumbered[static_cast<size_t>(id)];
}

void forget_single_steps(Node& node) {
  std::set<std::string> single;
  for (const Loop& loop : node.loops) {
    if (loop.extent == 1) single.insert(loop.name);
  }
  if (single.empty()) return;
  node.target_index = at_zero(node.target_index, single);
  for (Instruction& instruction : node.body) instruction.index = at_zero(instruction.index, single);
}

}  // namespace

void eliminate_dead_code(Graph& graph) {
  for (Node& node : graph.nodes) forget_single_steps(node);
  std::vector<bool> needed(graph.buffers.size(), false);
  for (size_t id = 0; id < graph.buffers.size(); ++id)
    needed[id] = !graph.is_local(static_cast<BufferId>(id));
  std::vector<Node> live;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!needed[static_cast<size_t>(node->target)]) continue;
    for (const Instruction& instruction : node->body) {
      if (instruction.is_load()) needed[static_cast<size_t>(instruction.buffer)] = true;
    }
    live.push_back(std::move(*node));
  }
  std::reverse(live.begin(), live.end());
  graph.nodes = std::move(live);
  drop_unused_buffers(graph);
}

}  // namespace spyre
