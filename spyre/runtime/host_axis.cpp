#include "spyre/runtime/host_axis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace spyre {

std::vector<HostSpan> on_host_axis(std::span<const Activity> activities) {
  std::vector<size_t> order(activities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return activities[a].span.begin < activities[b].span.begin; });
  std::vector<HostSpan> shown(activities.size());
  int64_t shift = std::numeric_limits<int64_t>::min();
  for (const size_t i : order) {
    const auto begin = static_cast<int64_t>(std::llround(activities[i].span.begin.ns));
    const auto end = static_cast<int64_t>(std::llround(activities[i].span.end.ns));
    shift = std::max(shift, activities[i].asked - begin);
    shown[i] = {begin + shift, end + shift};
  }
  return shown;
}

}  // namespace spyre
