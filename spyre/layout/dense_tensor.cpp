#include "spyre/layout/dense_tensor.h"

#include <functional>
#include <set>

#include "spyre/layout/tile_axis.h"

namespace spyre {

std::optional<DenseTensor> dense_tensor(const DeviceLayout& layout, int64_t elements) {
  std::set<int64_t, std::greater<>> steps;
  const std::optional<size_t> tile = tile_axis(layout);
  for (size_t d = 0; d < layout.stride_map.size(); ++d) {
    if (layout.stride_map[d] > 0 && tile != d) {
      steps.insert(layout.stride_map[d]);
    }
  }
  DenseTensor dense{.size = {}, .stride = {steps.begin(), steps.end()}};
  int64_t outer = elements;
  for (const int64_t step : dense.stride) {
    if (outer % step != 0) {
      return std::nullopt;
    }
    dense.size.push_back(outer / step);
    outer = step;
  }
  return outer == 1 ? std::optional(dense) : std::nullopt;
}

}  // namespace spyre
