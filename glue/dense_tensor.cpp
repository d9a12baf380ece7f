#include "glue/dense_tensor.h"

#include <functional>
#include <set>

namespace spyre::glue {

std::optional<DenseTensor> dense_tensor(const DeviceLayout& layout, int64_t elements) {
  std::set<int64_t, std::greater<>> steps;
  const int64_t over_stick = layout.stride_map.back() * layout.device_size.back();
  for (const int64_t step : layout.stride_map) {
    if (step > 0 && step != over_stick) {
      steps.insert(step);
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

}  // namespace spyre::glue
