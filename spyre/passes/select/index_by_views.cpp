#include "spyre/passes/select/index_by_views.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "spyre/passes/select/call_views.h"

namespace spyre {
namespace {

/// Whether one step along a dimension is as long in both views.
bool have_same_steps(const TensorView& a, const TensorView& b) {
  if (a.size != b.size) return false;
  for (size_t d = 0; d < a.size.size(); ++d) {
    if (a.size[d] > 1 && a.stride[d] != b.stride[d]) return false;
  }
  return true;
}

bool is_number(const Call& call, size_t argument, double value) {
  const auto* number =
      argument < call.arguments.size() ? std::get_if<Number>(&call.arguments[argument]) : nullptr;
  return number != nullptr && number->value == value;
}

/// What a call adds to whole numbers; none if it makes others of them.
std::optional<int64_t> added_by(const Call& call) {
  if (call.op == "aten.add.Tensor" && (call.arguments.size() == 2 || is_number(call, 2, 1))) {
    const auto* number = std::get_if<Number>(&call.arguments[1]);
    const bool is_whole = number != nullptr && number->kind == Number::Kind::kInt;
    return is_whole ? std::optional(static_cast<int64_t>(number->value)) : std::nullopt;
  }
  const bool is_same = call.op == "aten._to_copy.default" || call.op == "aten.clone.default" ||
                       call.op == "prims.convert_element_type.default" ||
                       (call.op == "aten.mul.Tensor" && is_number(call, 1, 1));
  return is_same ? std::optional<int64_t>(0) : std::nullopt;
}

class Indexing {
 public:
  explicit Indexing(Graph& graph) : graph_(graph) {}

  void run() {
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      Node& node = graph_.nodes[at];
      if (!node.call || node.call->op != "aten.index.Tensor") continue;
      const std::optional<TensorView> view = view_of_indexed(*node.call);
      if (!view) continue;
      node.call->op = "aten.clone.default";
      node.call->arguments = {*view};
      read_by_those_behind(at, *view);
    }
  }

 private:
  /// A buffer counts if each of its elements holds its own number in the buffer, and this many more.
  std::optional<int64_t> counts_from(BufferId id) const {
    const auto fills = [id](const Node& node) { return writes(node, id); };
    const auto writer = std::ranges::find_if(graph_.nodes, fills);
    const HostType type = graph_.buffers[static_cast<size_t>(id)].dtype;
    if ((type != HostType::kInt64 && type != HostType::kInt32) || graph_.is_given(id) ||
        writer == graph_.nodes.end() || std::any_of(writer + 1, graph_.nodes.end(), fills)) {
      return std::nullopt;
    }
    const std::optional<int64_t> start = writer->call ? start_of_call(*writer->call) : start_of_loop(*writer);
    return start && std::abs(*start) <= kMostElements ? start : std::nullopt;
  }

  /// A loop that stores its own positions.
  std::optional<int64_t> start_of_loop(const Node& node) const {
    if (node.body.size() != 1 || node.body[0].op != BodyOp::index) return std::nullopt;
    const std::optional<TensorView> made = view_of(graph_, node, node.target, node.target_index);
    const std::optional<TensorView> values = view_of(graph_, node, node.target, node.body[0].index);
    if (!made || !values || !have_same_steps(*made, *values)) return std::nullopt;
    return values->offset - made->offset;
  }

  std::optional<int64_t> start_of_call(const Call& call) const {
    const auto* given = call.arguments.empty() ? nullptr : std::get_if<TensorView>(&call.arguments[0]);
    const std::optional<int64_t> added = added_by(call);
    if (given == nullptr || !added || call.results.size() != 1 || !have_same_steps(*given, call.results[0]))
      return std::nullopt;
    const std::optional<int64_t> start = counts_from(given->buffer);
    return start ? std::optional(*start + given->offset + *added - call.results[0].offset) : std::nullopt;
  }

  /// The elements of x that a call of `index` asks for, in the order of its result, if they lie as a view has them.
  std::optional<TensorView> view_of_indexed(const Call& call) const {
    const auto* x = std::get_if<TensorView>(&call.arguments[0]);
    const auto* indices = std::get_if<TensorList>(&call.arguments[1]);
    if (x == nullptr || indices == nullptr || indices->size() > x->size.size()) return std::nullopt;
    std::vector<size_t> indexed;
    size_t axes = 0;  // of the positions, which broadcast
    for (size_t d = 0; d < indices->size(); ++d) {
      if (!(*indices)[d]) continue;
      indexed.push_back(d);
      axes = std::max(axes, (*indices)[d]->size.size());
    }
    if (indexed.empty()) return std::nullopt;
    // In the result they are where the first of them is, if they are neighbours, and in front otherwise.
    const bool neighbours = indexed.back() - indexed.front() + 1 == indexed.size();
    const size_t first = neighbours ? indexed.front() : 0;
    TensorView view = call.results[0];
    view.buffer = x->buffer;
    view.offset = x->offset;
    std::ranges::fill(view.stride, 0);
    for (const size_t d : indexed) {
      const TensorView& positions = *(*indices)[d];
      const std::optional<int64_t> start = counts_from(positions.buffer);
      if (!start) return std::nullopt;
      const int64_t begin = *start + positions.offset;
      int64_t end = begin + 1;
      for (size_t p = 0; p < positions.size.size(); ++p) {
        if (positions.size[p] == 1 || positions.stride[p] == 0) continue;
        int64_t& stride = view.stride[first + axes - positions.size.size() + p];
        if (positions.stride[p] != 1 || stride != 0) return std::nullopt;
        stride = x->stride[d];
        end += positions.size[p] - 1;
      }
      if (begin < 0 || end > x->size[d]) return std::nullopt;
      view.offset += begin * x->stride[d];
    }
    size_t axis = 0;  // of the result
    for (size_t d = 0; d < x->size.size(); ++d) {
      if (std::ranges::find(indexed, d) != indexed.end()) continue;
      axis += axis == first ? axes : 0;
      view.stride[axis++] = x->stride[d];
    }
    return view;
  }

  /// Calls that read the copy, which node `at` makes, read what is copied, as long as it is the same.
  void read_by_those_behind(size_t at, const TensorView& source) {
    const TensorView made = graph_.nodes[at].call->results[0];
    for (size_t i = at + 1; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (node.call) {
        for_each_operand(*node.call, [&](TensorView& view) {
          if (view.buffer != made.buffer) return;
          if (std::optional<TensorView> there = moved(view, made, source)) view = *std::move(there);
        });
      }
      if (writes(node, source.buffer) || writes(node, made.buffer)) return;
    }
  }

  Graph& graph_;
};

}  // namespace

void index_by_views(Graph& graph) {
  Indexing(graph).run();
}

}  // namespace spyre
