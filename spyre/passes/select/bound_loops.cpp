#include "spyre/passes/select/bound_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "spyre/passes/select/extent_coordinates.h"

namespace spyre {
namespace {

class Step {
 public:
  Step(Graph& graph, Node& node, BufferId first_own) : graph_(graph), node_(node), first_own_(first_own) {}

  // From what it reads: its loops, then what it writes.
  Status forward() {
    for (const Instruction& instruction : node_.body) {
      if (instruction.is_load()) SPYRE_TRY(walk(instruction.buffer, instruction.index));
    }
    SPYRE_TRY(walk(node_.target, node_.target_index));
    return bound_target();
  }

  // From who reads it: what is computed from positions alone, a causal mask say, is needed as far as its readers run.
  void backward(std::span<const Node> after) {
    Buffer& target = graph_.buffers[static_cast<size_t>(node_.target)];
    const auto position = extent_coordinates(target, node_.target_index, node_.loops);
    if (node_.target < first_own_ || !target.bounds.empty() || !position) return;
    std::vector<ExtentId> bounds(target.size.size(), kFixed);
    for (size_t d = 0; d < bounds.size(); ++d) {
      Loop* loop = loop_of((*position)[d]);
      if (loop == nullptr || loop->bound != kFixed || loop->extent != target.size[d]) continue;
      bounds[d] = loop->bound = bound_of_readers(target, d, after);
    }
    if (std::ranges::any_of(bounds, [](ExtentId bound) { return bound != kFixed; })) target.bounds = bounds;
  }

 private:
  // How far all nodes that read it walk along a dimension; fixed where they differ, or one of them does something else.
  ExtentId bound_of_readers(const Buffer& target, size_t dim, std::span<const Node> after) const {
    std::set<ExtentId> found;
    for (const Node& reader : after) {
      if (reader.target == node_.target) return kFixed;
      for (const Instruction& load : reader.body) {
        if (!load.is_load() || load.buffer != node_.target) continue;
        const auto position = extent_coordinates(target, load.index, reader.loops);
        const Loop* loop = position ? loop_of((*position)[dim], reader) : nullptr;
        found.insert(loop != nullptr && loop->extent == target.size[dim] ? loop->bound : kFixed);
      }
    }
    return found.size() == 1 ? *found.begin() : kFixed;
  }

  Error refuse(ExtentId id, std::string_view why) const {
    return Error(ErrorKind::kUnsupported, fmt::format("its sizes change from call to call, and {}", why))
        .of_extent(extent(id).source);
  }
  const Extent& extent(ExtentId id) const { return graph_.extents[static_cast<size_t>(id)]; }
  // The loop that a coordinate is, if it is nothing else.
  template <class NodeType>
  static auto loop_of(const Expr& coordinate, NodeType& node) -> decltype(&node.loops.front()) {
    if (coordinate.terms().size() != 1 || coordinate.constant_term() != 0) return nullptr;
    const ExprTerm& term = coordinate.terms().front();
    if (term.kind != AtomKind::kSymbol || term.coefficient != 1) return nullptr;
    const auto loop = std::ranges::find(node.loops, term.name, &Loop::name);
    return loop == node.loops.end() ? nullptr : &*loop;
  }
  Loop* loop_of(const Expr& coordinate) const { return loop_of(coordinate, node_); }

  // Loops that walk a dimension with an extent have it, too.
  Status walk(BufferId id, const Expr& index) {
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
    if (std::ranges::all_of(buffer.bounds, [](ExtentId bound) { return bound == kFixed; })) return Status();
    const auto position = extent_coordinates(buffer, index, node_.loops);
    if (!position) {
      const auto open = std::ranges::find_if(buffer.bounds, [](ExtentId bound) { return bound != kFixed; });
      return refuse(*open, fmt::format("it sees '{}' in other dimensions than it has", buffer.name));
    }
    for (size_t d = 0; d < buffer.bounds.size(); ++d) {
      const ExtentId bound = buffer.bounds[d];
      const Expr& coordinate = (*position)[d];
      if (bound == kFixed || coordinate == Expr()) continue;
      Loop* loop = loop_of(coordinate);
      if (loop == nullptr || loop->extent != buffer.size[d]) {
        return refuse(bound, fmt::format("it reads position {} of '{}' along extent {}",
                                         coordinate.to_string(), buffer.name, extent(bound).name));
      }
      if (loop->bound == kFixed) loop->bound = bound;
      if (loop->bound != bound) {
        return refuse(bound, fmt::format("'{}' has extent {} where another operand has {}", buffer.name,
                                         extent(bound).source, extent(loop->bound).source))
            .of_extent(extent(loop->bound).source);
      }
    }
    return Status();
  }

  // A buffer of the form's own is as long as what is written into it.
  Status bound_target() {
    Buffer& target = graph_.buffers[static_cast<size_t>(node_.target)];
    const bool bounded =
        std::ranges::any_of(node_.loops, [](const Loop& l) { return !l.reduced && l.bound != kFixed; });
    if (!bounded) return Status();
    const auto position = extent_coordinates(target, node_.target_index, node_.loops);
    std::vector<ExtentId> bounds(target.size.size(), kFixed);
    for (Loop& loop : node_.loops) {
      if (loop.reduced || loop.bound == kFixed) continue;
      const auto along = [&](const Expr& coordinate) { return loop_of(coordinate) == &loop; };
      const auto dim =
          position ? std::ranges::find_if(*position, along) : std::vector<Expr>::const_iterator();
      if (!position || dim == position->end())
        return refuse(loop.bound, fmt::format("it merges the dimension of extent {} with another",
                                              extent(loop.bound).name));
      bounds[static_cast<size_t>(dim - position->begin())] = loop.bound;
    }
    if (node_.target >= first_own_ && target.bounds.empty()) target.bounds = bounds;
    for (size_t d = 0; d < bounds.size(); ++d) {
      if (bounds[d] != kFixed && target.bound(d) == kFixed)
        return refuse(bounds[d], fmt::format("it writes '{}' along extent {}, which other parts are not",
                                             target.name, extent(bounds[d]).name));
    }
    return Status();
  }

  Graph& graph_;
  Node& node_;
  BufferId first_own_;
};

}  // namespace

Status bound_loops(Graph& graph, size_t first, BufferId first_own) {
  if (graph.extents.empty()) return Status();
  for (size_t i = first; i < graph.nodes.size(); ++i)
    SPYRE_TRY(Step(graph, graph.nodes[i], first_own).forward());
  for (size_t i = graph.nodes.size(); i-- > first;)
    Step(graph, graph.nodes[i], first_own).backward(std::span(graph.nodes).subspan(i + 1));
  return Status();
}

}  // namespace spyre
