#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// Cuts the loops of every node where the layouts need it, so that from here on a loop is one dimension of
/// every operand.
///
///     x [4, 128] lies in rows, y [512] in one        node y (p0: 512)  y[p0] = neg x[p0]
///                                              ->    node y (p0_1: 4, p0_0: 128)  y[128*p0_1 + p0_0] = neg x[...]
///
/// Needs layouts.
Status cut_loops(DeviceGraph& graph);

}  // namespace spyre
