#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "spyre/graph/device_graph.h"
#include "spyre/graph/graph.h"

namespace spyre {
namespace {

/// More than any card has cores.
constexpr int64_t kMostSlices = 1024;

/// A product or a sum that must stay within `kMostElements`.
class BoundedCount {
 public:
  explicit BoundedCount(int64_t start) : count_(start) {}

  bool times(int64_t factor) { return fits(!__builtin_mul_overflow(count_, factor, &count_)); }
  bool plus(int64_t a, int64_t b) {
    int64_t product = 0;
    return fits(!__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(count_, product, &count_));
  }
  int64_t count() const { return count_; }

 private:
  bool fits(bool exact) const { return exact && count_ >= 0 && count_ <= kMostElements; }

  int64_t count_;
};

Status check_buffer(const GraphBuffers& graph, const Buffer& buffer) {
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("graph '{}': buffer '{}' {}", graph.name, buffer.name, why));
  };
  const std::string too_large = fmt::format("has more than {} elements", kMostElements);
  if (buffer.storage < 0 || buffer.offset < 0) return refuse("starts or ends before its storage");
  BoundedCount elements(1), reach(0);
  if (buffer.storage > kMostElements || !reach.plus(buffer.offset, 1)) return refuse(too_large);
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.size[d] < 0 || buffer.stride[d] < 0) return refuse("has a negative size or stride");
    if (!elements.times(std::max<int64_t>(buffer.size[d], 1)) ||
        !reach.plus(buffer.size[d], buffer.stride[d])) {
      return refuse(too_large);
    }
  }
  if (buffer.place && (buffer.place->offset < 0 || buffer.place->offset > kMostElements)) {
    return refuse(fmt::format("is placed at {}, outside any memory", buffer.place->offset));
  }
  if (!buffer.layout) return Status();
  const Status layout = buffer.layout->check_well_formed();
  return layout.ok() ? Status()
                     : Status(refuse("has a layout no memory can have: " + layout.error().to_string()));
}

/// No value of an index is further from zero than this; none: further than any buffer reaches.
std::optional<int64_t> magnitude(const Expr& index, const std::vector<Loop>& loops) {
  BoundedCount most(0);
  if (!most.plus(std::abs(index.constant_term()), 1)) return std::nullopt;
  for (const ExprTerm& term : index.terms()) {
    int64_t atom = 1;
    for (const Loop& loop : loops) {
      if (term.kind == AtomKind::kSymbol && loop.name == term.name) atom = loop.extent;
    }
    if (term.kind == AtomKind::kFloorDiv || term.kind == AtomKind::kMod) {
      const std::optional<int64_t> inner = magnitude(term.inner, loops);
      if (!inner) return std::nullopt;
      atom = term.kind == AtomKind::kMod ? std::min(term.divisor, *inner + 1) : *inner / term.divisor + 1;
    }
    if (!most.plus(std::abs(term.coefficient), atom)) return std::nullopt;
  }
  return most.count();
}

bool touches(const Node& node, BufferId id) {
  return node.target == id || std::any_of(node.body.begin(), node.body.end(), [&](const Instruction& i) {
           return i.is_load() && i.buffer == id;
         });
}

bool touches(const DeviceNode& node, BufferId id) {
  bool found = false;
  for_each_access(node.op, [&](const Access& access) { found = found || access.buffer == id; });
  return found;
}

Status check_view(const GraphBuffers& graph, const Node& node, const TensorView& view) {
  const auto refuse = [&](std::string_view why) {
    const std::string& name = graph.buffers[static_cast<size_t>(view.buffer)].name;
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("graph '{}', call '{}': its view of '{}' {}", graph.name, node.name, name, why));
  };
  const std::string too_large = fmt::format("has more than {} elements", kMostElements);
  if (view.offset < 0) return refuse("starts before its storage");
  BoundedCount elements(1), reach(0);
  if (!reach.plus(view.offset, 1)) return refuse(too_large);
  for (size_t d = 0; d < std::min(view.size.size(), view.stride.size()); ++d) {
    if (view.size[d] < 0 || view.stride[d] < 0) return refuse("has a negative size or stride");
    if (!elements.times(std::max<int64_t>(view.size[d], 1)) || !reach.plus(view.size[d], view.stride[d])) {
      return refuse(too_large);
    }
  }
  return Status();
}

Status check_call(const GraphBuffers& graph, const Node& node) {
  for (const TensorView& view : operands_of(*node.call)) SPYRE_TRY(check_view(graph, node, view));
  for (const TensorView& view : node.call->results) {
    if (view.buffer >= 0) SPYRE_TRY(check_view(graph, node, view));
  }
  for (const Argument& argument : node.call->arguments) {
    const auto* list = std::get_if<std::vector<int64_t>>(&argument);
    if (list == nullptr) continue;
    for (const int64_t value : *list) {
      if (value < -kMostElements || value > kMostElements) {
        return Error(ErrorKind::kInvalidArgument,
                     fmt::format("graph '{}', call '{}': {} is beyond any size, at most {}", graph.name,
                                 node.name, value, kMostElements));
      }
    }
  }
  return Status();
}

// The head of a node, and every index that its body has besides that of the store.
Status check_loops(const GraphBuffers& graph, const NodeHead& node, const Expr& store,
                   const std::vector<const Expr*>& indices) {
  const auto refuse = [&](std::string_view what) {
    return Error(ErrorKind::kInvalidArgument, fmt::format("graph '{}', node '{}': has more than {} {}",
                                                          graph.name, node.name, kMostElements, what))
        .about(origin_of(node));
  };
  BoundedCount points(1);
  for (const Loop& loop : node.loops) {
    if (!points.times(std::max<int64_t>(loop.extent, 1))) return refuse("points");
    if (std::max({loop.split, loop.step, loop.to_split, loop.to_step}) > kMostSlices) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("graph '{}', node '{}': loop '{}' is cut into more than {} slices", graph.name,
                               node.name, loop.name, kMostSlices))
          .about(origin_of(node));
    }
  }
  if (!magnitude(store, node.loops)) return refuse("elements to choose from in its store");
  for (const Expr* index : indices) {
    if (!magnitude(*index, node.loops)) return refuse("values of an index");
  }
  return Status();
}

Status check_node(const GraphBuffers& graph, const Node& node) {
  if (node.call) return check_call(graph, node);
  std::vector<const Expr*> indices;
  for (const Instruction& instruction : node.body) indices.push_back(&instruction.index);
  return check_loops(graph, node, node.target_index, indices);
}

Status check_node(const GraphBuffers& graph, const DeviceNode& node) {
  std::vector<const Expr*> indices;
  for_each_read(node.op, [&](const Access& access) { indices.push_back(&access.index); });
  return check_loops(graph, node, node.op.output.index, indices);
}

template <class Nodes>
Status check_all(const GraphBuffers& graph, const Nodes& nodes) {
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    const Status fits = check_buffer(graph, graph.buffers[id]);
    if (fits.ok()) continue;
    // Whoever touches a buffer first asks for it.
    for (const auto& node : nodes) {
      if (touches(node, static_cast<BufferId>(id))) return Error(fits.error()).about(origin_of(node));
    }
    return fits;
  }
  for (const auto& node : nodes) SPYRE_TRY(check_node(graph, node));
  return Status();
}

}  // namespace

Status check_sizes(const Graph& graph) {
  return check_all(graph, graph.nodes);
}

Status check_sizes(const DeviceGraph& graph) {
  return check_all(graph, graph.nodes);
}

}  // namespace spyre
