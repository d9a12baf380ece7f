#include "spyre/layout/tile_axis.h"

#include <algorithm>
#include <vector>

namespace spyre {

std::optional<size_t> tile_axis(const DeviceLayout& layout) {
  const int64_t lane_stride = layout.stride_map.back();
  if (lane_stride <= 0) return std::nullopt;
  std::vector<size_t> found;
  for (size_t d = 0; d + 1 < layout.device_size.size(); ++d) {
    if (layout.stride_map[d] != lane_stride * layout.device_size.back()) continue;
    if (layout.device_size[d] == 1) return d;
    found.push_back(d);
  }
  if (found.size() == 1) return found.front();
  const auto usual = std::find(found.begin(), found.end(), layout.device_size.size() - 3);
  return usual == found.end() ? std::nullopt : std::optional(*usual);
}

}  // namespace spyre
