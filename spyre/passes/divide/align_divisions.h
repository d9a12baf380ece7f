#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// Divides a node as the producer of one of its operands is divided, where that costs no core: what a core
/// wrote it then reads itself, and the buffer between them may live in LX.
///
///     h = x w       m/4, n/8 by the matmul planner         h = x w       m/4@8, n/8@1
///     y = gelu h    m/32 by the default rule        ->     y = gelu h    m/4@8, n/8@1
///
/// In the order of nodes, so that a chain follows its head; of several operands the largest decides. Left
/// alone: matmuls (their division has a planner of its own), nodes with hints, and everything that splits a
/// reduction or would have to: the order of a sum stays, and with it every bit of the result.
///
/// Runs after divide-work, before the scratchpads are planned.
Status align_divisions(DeviceGraph& graph, int64_t cores);

}  // namespace spyre
