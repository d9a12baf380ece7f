#include "spyre/passes/layout_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "spyre/graph/normal_op.h"

namespace spyre {

int64_t bytes_of(const DeviceLayout& layout) {
  const auto bytes = layout.byte_size();
  return bytes.ok() ? bytes.value().count() : 0;
}

namespace {

bool steps_by(const DeviceLayout& layout, int64_t stride) {
  return std::find(layout.stride_map.begin(), layout.stride_map.end(), stride) != layout.stride_map.end();
}

}  // namespace

Node copy_node(const Graph& graph, BufferId from, BufferId to, const DeviceLayout& from_layout,
               const DeviceLayout& to_layout) {
  const Buffer& source = graph.buffers[static_cast<size_t>(from)];
  Node node{.name = graph.buffers[static_cast<size_t>(to)].name};
  Expr index;
  int64_t joined = 1;  // positions of the dimensions before that are walked with the next one
  for (size_t d = 0; d < source.size.size(); ++d) {
    const int64_t stride = source.stride[d];
    if (stride == 0) continue;  // one element, seen many times
    const bool named = steps_by(from_layout, stride) && steps_by(to_layout, stride);
    const bool dense = d + 1 < source.size.size() && stride == source.size[d + 1] * source.stride[d + 1];
    if (source.size[d] > 1 && !named && dense) {
      joined *= source.size[d];
      continue;
    }
    node.loops.push_back({.name = fmt::format("p{}", d), .extent = joined * walkable_extent(graph, from, d)});
    index = index + stride * Expr::symbol(node.loops.back().name);
    joined = 1;
  }
  DeviceOp op{
      .op = "identity", .inputs = {{from, index + Expr::constant(source.offset)}}, .output = {to, index}};
  set_device_op(graph, node, op, source.dtype);
  return node;
}

bool Conversions::direct(BufferId buffer, const DeviceLayout& from, const DeviceLayout& to) const {
  const Node node = copy_node(graph_, buffer, buffer, from, to);
  const std::array<const DeviceLayout*, 2> layouts = {&from, &to};
  return normalize_op(graph_, node, layouts).ok();
}

std::optional<Conversion> Conversions::path(BufferId buffer, const DeviceLayout& from,
                                            std::vector<DeviceLayout> steps) const {
  Conversion conversion{.steps = std::move(steps)};
  const DeviceLayout* previous = &from;
  for (const DeviceLayout& step : conversion.steps) {
    if (!direct(buffer, *previous, step)) return std::nullopt;
    conversion.bytes += bytes_of(*previous) + bytes_of(step);
    previous = &step;
  }
  return conversion;
}

// A stick is turned, its rows are woven, and turned again.
std::optional<Conversion> Conversions::weave(BufferId buffer, const DeviceLayout& from,
                                             const DeviceLayout& to) const {
  for (const DeviceLayout& turned : candidates_[static_cast<size_t>(buffer)]) {
    const std::optional<DeviceLayout> woven = with_woven_rows(turned, to.stride_map.back());
    if (!woven) continue;
    const bool single = turned.stride_map.back() < 0;
    auto found =
        turned == from ? path(buffer, from, {*woven, single ? with_lane_dimension(to) : to})
        : single ? path(buffer, from, {with_lane_dimension(from), turned, *woven, with_lane_dimension(to)})
                 : path(buffer, from, {turned, *woven, to});
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<Conversion> Conversions::search(BufferId buffer, const DeviceLayout& from,
                                              const DeviceLayout& to) const {
  const auto path = [&](std::vector<DeviceLayout> steps) {
    return Conversions::path(buffer, from, std::move(steps));
  };
  if (auto one = path({to})) return one;
  const bool from_single = from.stride_map.back() < 0, to_single = to.stride_map.back() < 0;
  constexpr auto kWoven = ElementArrangement::FP32_TO_DL16;
  if (from.element_arrangement != kWoven && to.element_arrangement == kWoven) {
    return weaving_ == Weaving::kByCopies ? weave(buffer, from, to) : std::nullopt;
  }
  // What comes out has room for the lanes it does not use; it reads like `to`.
  if (from_single && !to_single) return path({with_lane_dimension(to)});
  if (!from_single && to_single) return path({with_lane_dimension(from), to});
  if (from.element_arrangement != kWoven) {
    // Sticks along one dimension that begin elsewhere are turned away from it, and back; others that lie in
    // other pieces are put together before they are turned, or after.
    std::optional<Conversion> cheapest;
    if (from_single || to_single) return cheapest;
    const bool same_way = from.stride_map.back() == to.stride_map.back();
    for (const DeviceLayout& between : candidates_[static_cast<size_t>(buffer)]) {
      const int64_t stick = between.stride_map.back();
      if (stick < 0 || (same_way && stick == from.stride_map.back())) continue;
      auto two = path({between, to});
      if (two && (!cheapest || two->bytes < cheapest->bytes)) cheapest = std::move(two);
    }
    return cheapest;
  }
  // A woven stick is turned, its rows are put in order, and turned again.
  for (const DeviceLayout& turned : candidates_[static_cast<size_t>(buffer)]) {
    const std::optional<DeviceLayout> woven = with_woven_rows(turned, from.stride_map.back());
    if (!woven) continue;
    const bool single = turned.stride_map.back() < 0;
    auto found = single         ? path({with_lane_dimension(from), *woven, turned, with_lane_dimension(to)})
                 : turned == to ? path({*woven, to})
                                : path({*woven, turned, to});
    if (found) return found;
  }
  return std::nullopt;
}

const Conversion* Conversions::find(BufferId buffer, int from, int to) {
  const auto key = std::make_pair(buffer, std::make_pair(from, to));
  auto known = known_.find(key);
  if (known == known_.end()) {
    const auto& layouts = candidates_[static_cast<size_t>(buffer)];
    known = known_
                .emplace(key,
                         search(buffer, layouts[static_cast<size_t>(from)], layouts[static_cast<size_t>(to)]))
                .first;
  }
  return known->second ? &*known->second : nullptr;
}

}  // namespace spyre
