#pragma once

#include <optional>

#include "spyre/layout/device_layout.h"

namespace spyre {

/// The axis of a layout that counts sticks along the rows that the stick cuts, if there is one.
///
/// Rows of exactly one stick step as tiles do. A single tile is then the axis of size 1, because a host axis of size 1
/// has stride -1; several tiles are where `DeviceLayout::ordered` puts them, outside the axis that is just outside the
/// stick.
///
///     f32[4, 32] with a second, empty tile    device_size [2, 4, 32]   stride_map [32, 32, 1]   ->  axis 0
std::optional<size_t> tile_axis(const DeviceLayout& layout);

}  // namespace spyre
