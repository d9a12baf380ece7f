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

// Whether a node writes every element of its buffer, so that nothing written before it is left.
bool writes_all(const Node& node, const Buffer& buffer) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // of the loops that move the store: by how much, how often
  for (const Loop& loop : node.loops) {
    if (!loop.reduced && loop.extent > 1)
      steps.emplace_back(node.target_index.coefficient(loop.name), loop.extent);
  }
  std::sort(steps.begin(), steps.end());
  int64_t written = 1;
  for (const auto& [step, extent] : steps) {
    if (step != written) return false;
    written *= extent;
  }
  // Each loop is one term: more terms are quotients, remainders, or positions that an index tensor gives.
  return written == buffer.reach() && node.target_index.terms().size() == steps.size() &&
         node.target_index.constant_term() == 0;
}

}  // namespace

void eliminate_dead_code(Graph& graph) {
  for (Node& node : graph.nodes) forget_single_steps(node);
  std::vector<bool> needed(graph.buffers.size(), false);
  for (size_t id = 0; id < graph.buffers.size(); ++id)
    needed[id] = !graph.is_local(static_cast<BufferId>(id));
  std::vector<Node> live;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto target = static_cast<size_t>(graph.owner(node->target));
    if (!needed[target]) continue;
    const Buffer& buffer = graph.buffers[target];
    const bool by_name = graph.buffers[static_cast<size_t>(node->target)].memory_of < 0;
    needed[target] = buffer.is_input || !by_name || !writes_all(*node, buffer);
    for (const Instruction& instruction : node->body) {
      if (instruction.is_load()) needed[static_cast<size_t>(graph.owner(instruction.buffer))] = true;
    }
    live.push_back(std::move(*node));
  }
  std::reverse(live.begin(), live.end());
  graph.nodes = std::move(live);
  drop_unused_buffers(graph);
}

}  // namespace spyre
