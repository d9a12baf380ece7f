#pragma once

#include <optional>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/graph.h"

namespace spyre {

/// The layouts worth trying for every buffer, by buffer id, best guess first.
///
/// A buffer can have its stick along any of its dimensions, or hold one element per stick. Dimensions that
/// lie dense in memory and that some node walks through with one loop (a flattened view) are also offered as
/// one. Element orders that only conversions make are offered when the graph has such conversions.
///
///     buffer [4, 100]  ->  stick on columns, stick on rows, one element per stick
///
/// An input has its real layout first; what follows is what a copy of it could have.
Result<std::vector<std::vector<DeviceLayout>>> layout_candidates(const Graph& graph);

/// The same layout with a dimension of one stick's length that only position 0 of carries data: the form in
/// which a tensor changes between whole sticks and one element per stick.
DeviceLayout with_lane_dimension(const DeviceLayout& layout);

/// The same layout with the rows along the host dimension of this stride in the order that narrowing leaves
/// in a stick: column 32 h + 4 g + e at 8 g + 4 h + e. None where there are no such rows, or no whole sticks
/// of them.
///
///     device_size [2, 128, 64]   stride_map [64, 1, 128]   ->   [2, 2, 8, 2, 4, 64]   [64, 64, 4, 32, 1,
///     128]
std::optional<DeviceLayout> with_woven_rows(const DeviceLayout& layout, int64_t stride);

}  // namespace spyre
