#include "spyre/passes/select/cut_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "spyre/passes/select/extent_coordinates.h"

namespace spyre {
namespace {

class Cutter {
 public:
  explicit Cutter(Graph& graph) : graph_(graph) {}

  void run() {
    stage_operands();
    before_ = graph_.buffers;
    cut_.resize(before_.size());
    for (size_t id = 0; id < graph_.buffers.size(); ++id)
      cut_[id] = graph_.is_local(static_cast<BufferId>(id)) && is_dense(graph_.buffers[id]);
    // What is seen in other dimensions than it has stays as long as it is.
    for_each_access([&](BufferId id, Expr& index, const Node& node) {
      const bool keeps = extent_coordinates(before_[static_cast<size_t>(id)], index, node.loops).has_value();
      cut_[static_cast<size_t>(id)] = cut_[static_cast<size_t>(id)] && keeps;
    });
    for (size_t id = 0; id < graph_.buffers.size(); ++id) {
      if (cut_[id]) shorten(graph_.buffers[id]);
    }
    for_each_access([&](BufferId id, Expr& index, const Node& node) {
      if (cut_[static_cast<size_t>(id)]) index = moved(id, index, node.loops);
    });
    for (Node& node : graph_.nodes) {
      for (Loop& loop : node.loops) {
        if (loop.bound == kFixed) continue;
        loop.extent = most(loop.bound);
        loop.bound = kFixed;
      }
    }
  }

 private:
  bool is_cut(const Buffer& buffer) const {
    return std::ranges::any_of(buffer.bounds, [&](ExtentId bound) {
      return bound != kFixed && most(bound) < graph_.extents[static_cast<size_t>(bound)].capacity;
    });
  }

  // A buffer of the graph's own with the elements of another, and the node that fills it.
  BufferId staged(BufferId id, std::vector<Node>& nodes) {
    const Buffer given = graph_.buffers[static_cast<size_t>(id)];
    const BufferId part = graph_.add_buffer({.name = given.name + "_part",
                                             .dtype = given.dtype,
                                             .size = given.size,
                                             .stride = contiguous_strides(given.size),
                                             .bounds = given.bounds});
    Node copy{{.name = graph_.buffers.back().name}};
    Expr element = Expr::constant(given.offset);
    for (size_t d = 0; d < given.size.size(); ++d) {
      copy.loops.push_back({.name = fmt::format("p{}", d), .extent = given.size[d], .bound = given.bound(d)});
      element = element + given.stride[d] * Expr::symbol(copy.loops.back().name);
    }
    copy.body.push_back({.op = BodyOp::load, .buffer = id, .index = element, .dtype = given.dtype});
    copy.target = part;
    copy.target_index = row_major(copy.loops);
    nodes.push_back(std::move(copy));
    return part;
  }

  void stage_operands() {
    std::map<BufferId, BufferId> parts;  // as long as nobody writes what they are parts of
    std::vector<Node> nodes;
    for (Node& node : graph_.nodes) {
      const bool product =
          std::ranges::any_of(node.body, [](const Instruction& i) { return i.op == BodyOp::dot; });
      for (Instruction& load : node.body) {
        if (!product || !load.is_load()) continue;
        const Buffer given = graph_.buffers[static_cast<size_t>(load.buffer)];
        // A result whose layout was decided before is read as it lies, or not at all.
        const bool decided = !given.is_input && given.layout && !given.bounds.empty();
        if (graph_.is_local(load.buffer) || !(is_cut(given) || decided)) continue;
        const auto position = extent_coordinates(given, load.index, node.loops);
        if (!position) continue;
        const auto [part, is_new] = parts.try_emplace(load.buffer, -1);
        if (is_new) {
          part->second = staged(load.buffer, nodes);
          make_step_of(node, nodes.back());
        }
        load.buffer = part->second;
        load.index = Expr();
        const std::vector<int64_t> stride = graph_.buffers[static_cast<size_t>(part->second)].stride;
        for (size_t d = 0; d < stride.size(); ++d) load.index = load.index + stride[d] * (*position)[d];
      }
      parts.erase(node.target);
      nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
  }

  int64_t most(ExtentId id) const { return graph_.extents[static_cast<size_t>(id)].most; }

  template <class Visit>
  void for_each_access(Visit&& visit) {
    for (Node& node : graph_.nodes) {
      for (Instruction& instruction : node.body) {
        if (instruction.is_load()) visit(instruction.buffer, instruction.index, node);
      }
      visit(node.target, node.target_index, node);
    }
  }

  // Elements of the dimensions inside this one.
  static int64_t inside(const Buffer& of, const std::vector<int64_t>& size, size_t dim) {
    int64_t elements = 1;
    for (size_t d = 0; d < size.size(); ++d) {
      if (of.size[d] > 1 && of.stride[d] < of.stride[dim]) elements *= size[d];
    }
    return elements;
  }

  static bool is_dense(const Buffer& buffer) {
    const bool open = std::ranges::any_of(buffer.bounds, [](ExtentId bound) { return bound != kFixed; });
    if (!open || buffer.offset != 0 || buffer.storage != 0 || buffer.layout) return false;
    for (size_t d = 0; d < buffer.size.size(); ++d) {
      if (buffer.size[d] > 1 && buffer.stride[d] != inside(buffer, buffer.size, d)) return false;
    }
    return true;
  }

  void shorten(Buffer& buffer) {
    const Buffer before = buffer;
    for (size_t d = 0; d < buffer.bounds.size(); ++d) {
      if (buffer.bounds[d] != kFixed) buffer.size[d] = most(buffer.bounds[d]);
    }
    for (size_t d = 0; d < buffer.size.size(); ++d) {
      if (before.size[d] > 1) buffer.stride[d] = inside(before, buffer.size, d);
    }
    buffer.bounds.clear();
  }

  Expr moved(BufferId id, const Expr& index, const std::vector<Loop>& loops) const {
    const auto position = extent_coordinates(before_[static_cast<size_t>(id)], index, loops);
    Expr element;
    for (size_t d = 0; d < position->size(); ++d)
      element = element + graph_.buffers[static_cast<size_t>(id)].stride[d] * (*position)[d];
    return element;
  }

  Graph& graph_;
  std::vector<Buffer> before_;
  std::vector<bool> cut_;
};

}  // namespace

void cut_extents(Graph& graph) {
  if (!graph.extents.empty()) Cutter(graph).run();
}

}  // namespace spyre
