#include "spyre/passes/select/place_parts.h"

#include <algorithm>
#include <optional>

#include "spyre/passes/select/call_views.h"

namespace spyre {
namespace {

/// A tensor that a call copies into a part of its result.
struct Part {
  TensorView tensor;
  TensorView place;
};

std::optional<size_t> dimension(const Call& call, size_t rank) {
  const Number* given = call.arguments.size() > 1 ? std::get_if<Number>(&call.arguments[1]) : nullptr;
  const double dim = given == nullptr   ? 0
                     : given->value < 0 ? given->value + static_cast<double>(rank)
                                        : given->value;
  return dim >= 0 && dim < static_cast<double>(rank) ? std::optional(static_cast<size_t>(dim)) : std::nullopt;
}

/// Of `cat` a slice each, of `stack` a position each.
std::vector<Part> parts_side_by_side(const Call& call, bool stacked) {
  std::vector<Part> parts;
  const TensorView& result = call.results[0];
  const auto* tensors = std::get_if<TensorList>(&call.arguments[0]);
  const std::optional<size_t> dim = dimension(call, result.size.size());
  if (tensors == nullptr || !dim) return {};
  const auto at = static_cast<std::ptrdiff_t>(*dim);
  int64_t start = 0;
  for (const std::optional<TensorView>& tensor : *tensors) {
    if (!tensor || std::ranges::find(tensor->size, 0) != tensor->size.end()) continue;
    TensorView place = result;
    place.offset += start * result.stride[*dim];
    if (stacked) {
      place.size.erase(place.size.begin() + at);
      place.stride.erase(place.stride.begin() + at);
      ++start;
    } else {
      if (tensor->size.size() != result.size.size()) return {};
      place.size[*dim] = tensor->size[*dim];
      start += tensor->size[*dim];
    }
    if (place.size != tensor->size) return {};
    parts.push_back({.tensor = *tensor, .place = std::move(place)});
  }
  return parts;
}

/// What is inside of the padding, along one dimension.
std::vector<Part> padded_part(const Call& call) {
  const auto* tensor = std::get_if<TensorView>(&call.arguments[0]);
  const auto* padding =
      call.arguments.size() > 1 ? std::get_if<std::vector<int64_t>>(&call.arguments[1]) : nullptr;
  TensorView place = call.results[0];
  const size_t rank = place.size.size();
  if (tensor == nullptr || padding == nullptr || padding->size() > 2 * rank || tensor->size.size() != rank)
    return {};
  // Along several dimensions there are tensors between, and what is cut off has no place.
  size_t padded = 0;
  for (size_t i = 0; i < padding->size() / 2; ++i) {
    const int64_t before = (*padding)[2 * i], after = (*padding)[2 * i + 1];
    if (before < 0 || after < 0 || (padded += before + after > 0 ? 1 : 0) > 1) return {};
    place.offset += before * place.stride[rank - 1 - i];
  }
  place.size = tensor->size;
  return {{.tensor = *tensor, .place = std::move(place)}};
}

std::vector<Part> parts_of(const Node& node) {
  if (!node.call || node.call->arguments.empty() || node.call->results.size() != 1) return {};
  if (node.call->op == "aten.cat.default") return parts_side_by_side(*node.call, /*stacked=*/false);
  if (node.call->op == "aten.stack.default") return parts_side_by_side(*node.call, /*stacked=*/true);
  if (node.call->op == "aten.constant_pad_nd.default") return padded_part(*node.call);
  return {};
}

void place(Graph& graph, size_t at, const Part& part) {
  const BufferId id = part.tensor.buffer, target = part.place.buffer;
  const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
  const bool is_whole = part.tensor.size == buffer.size && part.tensor.stride == buffer.stride &&
                        part.tensor.offset == 0 && buffer.reach() == buffer.elements();
  const bool is_all = part.place.size == graph.nodes[at].call->results[0].size;
  if (id == target || !is_whole || is_all || !graph.is_local(id) || part.tensor.dtype != part.place.dtype ||
      graph.buffers[static_cast<size_t>(target)].is_input) {
    return;
  }
  // One call writes it, and calls read it, once of them as this part.
  std::vector<std::pair<TensorView*, TensorView>> changes;
  int writers = 0, parts = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    if (!node.call) {
      const auto touches = [&](const Instruction& step) { return step.is_load() && step.buffer == id; };
      if (node.target == id || node.target == target || std::ranges::any_of(node.body, touches)) return;
      continue;
    }
    writers += static_cast<int>(std::ranges::count(node.call->results, id, &TensorView::buffer));
    // What is changed later is not what the part was.
    if (i > at && std::ranges::count(node.call->results, target, &TensorView::buffer) != 0) return;
    bool fits = true;
    for_each_view(*node.call, [&](TensorView& view) {
      if (view.buffer != id) return;
      parts += i == at ? 1 : 0;
      std::optional<TensorView> there = moved(view, part.tensor, part.place);
      fits = fits && there;
      if (there) changes.emplace_back(&view, *std::move(there));
    });
    if (!fits) return;
  }
  if (writers != 1 || parts != 1) return;
  for (auto& [view, there] : changes) *view = std::move(there);
}

}  // namespace

void place_parts(Graph& graph) {
  // From the last on: a part may be one of parts itself.
  for (size_t at = graph.nodes.size(); at-- > 0;) {
    for (const Part& part : parts_of(graph.nodes[at])) place(graph, at, part);
  }
}

}  // namespace spyre
