#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// Cuts gathers and scatters where their indices end inside a stick: a core reads whole sticks of indices, or
/// less than one.
///
///     node y (p0: 72, p1: 1024)              node y (p0: 64, p1: 1024)     y_rest (p0: 8, p1: 1024)
///       i = load index[p0]            ->       i = load index[p0]            i = load index[p0 + 64]
///       store y[1024*p0 + p1] ...              store y[1024*p0 + p1] ...     store y[1024*p0 + p1 + 65536] ...
///
/// Needs layouts and cut loops.
Status peel_indices(DeviceGraph& graph);

}  // namespace spyre
