#include "spyre/passes/select/call_views.h"

#include <algorithm>
#include <functional>

namespace spyre {

bool writes(const Node& node, BufferId id) {
  if (!node.call) return node.target == id;
  const std::vector<TensorView>& results = node.call->results;
  return std::ranges::find(results, id, &TensorView::buffer) != results.end();
}

std::optional<TensorView> view_of(const Graph& graph, const Node& node, BufferId id, const Expr& index) {
  TensorView view{.buffer = id,
                  .dtype = graph.buffers[static_cast<size_t>(id)].dtype,
                  .size = {},
                  .stride = {},
                  .offset = index.constant_term()};
  size_t terms = 0;
  for (const Loop& loop : node.loops) {
    view.size.push_back(loop.extent);
    view.stride.push_back(index.coefficient(loop.name));
    terms += view.stride.back() != 0 ? 1 : 0;
  }
  return terms == index.terms().size() ? std::optional(std::move(view)) : std::nullopt;
}

std::optional<TensorView> moved(const TensorView& view, const TensorView& whole, const TensorView& place) {
  TensorView found = view;
  found.buffer = place.buffer;
  found.offset = place.offset;
  // Dimensions from the outermost in: what is left of an offset or a step is counted in the next ones.
  std::vector<size_t> order;
  for (size_t d = 0; d < whole.size.size(); ++d) {
    if (whole.size[d] > 1) order.push_back(d);
  }
  std::ranges::sort(order, std::greater<>(), [&](size_t d) { return whole.stride[d]; });
  std::vector<int64_t> last(whole.size.size());  // by dimension, the last position that the view sees
  int64_t offset = view.offset;
  for (const size_t d : order) {
    last[d] = offset / whole.stride[d];
    found.offset += last[d] * place.stride[d];
    offset %= whole.stride[d];
  }
  for (size_t i = 0; i < view.size.size(); ++i) {
    if (view.size[i] == 1 || view.stride[i] == 0) continue;
    const auto along =
        std::ranges::find_if(order, [&](size_t d) { return whole.stride[d] <= view.stride[i]; });
    if (along == order.end() || view.stride[i] % whole.stride[*along] != 0) return std::nullopt;
    const int64_t steps = view.stride[i] / whole.stride[*along];
    last[*along] += steps * (view.size[i] - 1);
    found.stride[i] = steps * place.stride[*along];
  }
  const bool inside = std::ranges::all_of(order, [&](size_t d) { return last[d] < whole.size[d]; });
  return inside && offset == 0 ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace spyre
