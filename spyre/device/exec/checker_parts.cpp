#include "spyre/device/exec/checker_parts.h"

#include <algorithm>

namespace spyre::exec {

StickRun hull_of(const Footprint& sticks) {
  int64_t first = sticks.front().first, end = sticks.front().end();
  for (const StickRun& run : sticks) {
    first = std::min(first, run.first);
    end = std::max(end, run.end());
  }
  return {first, end - first};
}

StickRun join(const StickRun& a, const StickRun& b) {
  const int64_t first = std::min(a.first, b.first);
  return {first, std::max(a.end(), b.end()) - first};
}

std::optional<StickRun> hull_of(const std::vector<Footprint>& cores) {
  std::optional<StickRun> hull;
  for (const Footprint& sticks : cores) {
    if (!sticks.empty()) {
      hull = hull ? join(*hull, hull_of(sticks)) : hull_of(sticks);
    }
  }
  return hull;
}

namespace {

bool contains(const StickRun& outer, const StickRun& inner) {
  return outer.first <= inner.first && inner.end() <= outer.end();
}

}  // namespace

bool is_slice_of(const MemoryShape& view, const StickRun& view_hull, const MemoryShape& buffer,
                 const StickRun& buffer_hull) {
  return contains(buffer_hull, view_hull) && (strides_within(view, buffer) || views(view, buffer));
}

bool is_plain(const Tensor& tensor) {
  return !tensor.is_index && !tensor.through &&
         std::none_of(tensor.dims.begin(), tensor.dims.end(),
                      [](const TensorDim& d) { return d.window.has_value() || d.indexed || d.index_outer; });
}

}  // namespace spyre::exec
