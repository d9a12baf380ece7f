#pragma once

#include "spyre/graph/device_graph.h"

namespace spyre {

/// Makes the summed dimension of every matmul end with a stick. The card sums over whole sticks, so what lies
/// behind the last element must be zero on both sides:
///
///     x [m, 67] w [67, n]      x' = where(k < 67, x, 0)         nothing behind 67 is anything but zero
///                              w' [128, n] = w, then 61 rows of zeros
///
/// Products of dimensions that are whole sticks are left alone. Needs select-ops; runs before layouts.
void pad_contractions(DeviceGraph& graph);

/// The loop that a matmul sums over when it does not end with a stick; none: there is nothing to pad.
const Loop* sums_part_of_stick(const DeviceNode& node);

}  // namespace spyre
