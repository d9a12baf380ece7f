#include "spyre/passes/select/expand_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/forms/expand.h"
#include "spyre/passes/select/bound_loops.h"
#include "spyre/passes/select/probe_extents.h"

namespace spyre {
namespace {

Error with_call(const Error& cause, const Node& node) {
  Error error(cause);
  error.message = fmt::format("expand-calls: node '{}': {}", node.name, cause.message);
  return std::move(error).about({.name = node.name, .aten = node.call->op, .source = node.source});
}

// Splits are wished for dimensions of the first result, `p<number>`; a node of the form has such a loop where its extent
// is the same.
void pass_on_hints(const Node& call, Node& node) {
  const auto is_wanted = [](const TensorView& made) { return made.buffer >= 0; };
  const std::vector<int64_t>& size = std::ranges::find_if(call.call->results, is_wanted)->size;
  for (const auto& hint : call.hints) {
    for (const Loop& loop : node.loops) {
      for (size_t d = 0; d < size.size(); ++d) {
        if (!loop.reduced && loop.name == hint.first && loop.name == fmt::format("p{}", d) &&
            loop.extent == size[d]) {
          node.hints.push_back(hint);
        }
      }
    }
  }
}

}  // namespace

Status expand_calls(Graph& graph) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (Node& node : nodes) {
    if (!node.call) {
      graph.nodes.push_back(std::move(node));
      continue;
    }
    const size_t first = graph.nodes.size();
    const auto first_own = static_cast<BufferId>(graph.buffers.size());
    const Status expanded = forms::expand_call(
        graph, *node.call, node.name, node.source,
        {.default_float = node.call->default_float, .float32_parts = node.call->float32_parts});
    if (!expanded.ok()) return with_call(expanded.error(), node);
    for (size_t i = first; i < graph.nodes.size(); ++i) {
      Node& step = graph.nodes[i];
      if (step.name != node.name) step.origin = node.name;
      step.aten = node.call->op;
      pass_on_hints(node, step);
    }
    Status lasts = bound_loops(graph, first, first_own);
    if (lasts.ok()) lasts = probe_extents(graph, node, first);
    if (!lasts.ok()) return with_call(lasts.error(), node);
  }
  return Status();
}

}  // namespace spyre
