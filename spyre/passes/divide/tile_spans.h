#pragma once

#include <cstdint>

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// Runs nodes in parts, one after the other, where no division of the whole brings every tensor within the reach of a
/// core: 49159 columns are 769 sticks, and 769 is a prime.
///
///     node y (p0: 1, p1: 49159, r0: 4096)        node y_part0 (p0: 1, p1: 49152, r0: 4096)
///       store y[p1] ...                    ->      store y[p1] ...
///                                                node y_part1 (p0: 1, p1: 7, r0: 4096)
///                                                  store y[p1 + 49152] ...
///
/// A table that index tensors point into counts as far as they may point, for every core; its rows are read in parts:
/// of 49159 rows of 4096 elements, half of each row.
///
/// Parts are as long as a division of them allows, and whole multiples of the cores where they can be, so that all cores
/// have work. Summed loops are not cut. A node that no parts help is left for divide-work to refuse.
///
/// Needs layouts and cut loops.
Status tile_spans(DeviceGraph& graph, int64_t cores);

}  // namespace spyre
