#include <fmt/format.h>

#include <set>

#include "spyre/graph/graph.h"

namespace spyre {
namespace {

class NodeRules {
 public:
  NodeRules(const Graph& graph, const Node& node, std::set<BufferId>& written)
      : graph_(graph), node_(node), written_(written) {
    for (const Loop& loop : node.loops) loops_.insert(loop.name);
  }

  Status check();

 private:
  Error refuse(std::string_view message) const {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("graph '{}', node '{}': {}", graph_.name, node_.name, message));
  }
  const Buffer& buffer(BufferId id) const { return graph_.buffers[static_cast<size_t>(id)]; }

  Status known_symbols(const Expr& index, std::string_view what) const;
  Status body();
  Status index(const Expr& index, BufferId id, std::string_view verb);

  const Graph& graph_;
  const Node& node_;
  std::set<BufferId>& written_;
  std::set<std::string> loops_;
};

Status NodeRules::check() {
  SPYRE_TRY(body());
  if (buffer(node_.target).fill)
    return refuse(fmt::format("stores into the constant '{}'", buffer(node_.target).name));
  for (const Loop& loop : node_.loops) {
    if (loop.reduced && node_.target_index.symbols().contains(loop.name)) {
      return refuse(fmt::format("its store uses '{}', a loop that is reduced", loop.name));
    }
  }
  SPYRE_TRY(index(node_.target_index, node_.target, "store"));
  written_.insert(graph_.owner(node_.target));
  return Status();
}

Status NodeRules::body() {
  bool reduced = false;
  for (const Instruction& instruction : node_.body) {
    if (instruction.is_load()) {
      const BufferId owner = graph_.owner(instruction.buffer);
      const Buffer& source = buffer(owner);
      if (!source.is_input && !source.fill && !written_.contains(owner)) {
        return refuse(
            fmt::format("reads '{}' before anything is written there", buffer(instruction.buffer).name));
      }
      SPYRE_TRY(index(instruction.index, instruction.buffer, "load"));
    }
    if (instruction.op == "index") {
      SPYRE_TRY(known_symbols(instruction.index, "an index value"));
    }
    if (instruction.is_reduction()) {
      if (reduced) return refuse("has two reductions, at most one is allowed");
      reduced = true;
    }
  }
  return Status();
}

Status NodeRules::known_symbols(const Expr& index, std::string_view what) const {
  for (const std::string& symbol : index.symbols()) {
    if (!loops_.contains(symbol)) {
      return refuse(fmt::format("{} uses '{}', which is no loop of the node", what, symbol));
    }
  }
  return Status();
}

Status NodeRules::index(const Expr& index, BufferId id, std::string_view verb) {
  SPYRE_TRY(known_symbols(index, fmt::format("{} of '{}'", verb, buffer(id).name)));
  for (const Loop& loop : node_.loops) {
    if (loop.extent == 0) return Status();  // never runs
  }
  const IndexRange range = range_of(index, node_.loops);
  // An input may be a view into a larger storage; only its own buffer is bounded.
  const bool past_end = !graph_.is_given(id) && range.high >= buffer(id).reach();
  if (range.low < 0 || past_end) {
    return refuse(fmt::format("{} of '{}' reaches elements {} to {}, the buffer has {}", verb,
                              buffer(id).name, range.low, range.high, buffer(id).reach()));
  }
  return Status();
}

}  // namespace

Status verify(const Graph& graph) {
  std::set<std::string_view> names;
  for (const Buffer& buffer : graph.buffers) {
    if (!names.insert(buffer.name).second) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("graph '{}': buffer '{}' appears twice", graph.name, buffer.name));
    }
  }
  std::set<BufferId> written;
  int64_t bundle = 0;
  for (const Node& node : graph.nodes) {
    SPYRE_TRY(NodeRules(graph, node, written).check());
    if (node.bundle != bundle && (&node == &graph.nodes.front() || node.bundle != bundle + 1)) {
      return Error(
          ErrorKind::kInvalidArgument,
          fmt::format("graph '{}', node '{}': is in bundle {} after bundle {}: bundles count up from "
                      "0, one by one",
                      graph.name, node.name, node.bundle, bundle));
    }
    bundle = node.bundle;
  }
  for (const BufferId id : graph.results) {
    const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
    if (!buffer.is_input && !buffer.fill && !written.contains(id)) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("graph '{}': returns '{}', which nothing writes", graph.name, buffer.name));
    }
  }
  return Status();
}

}  // namespace spyre
