#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"
#include "spyre/opspec/opspec.h"

namespace spyre {

/// A graph in which everything is decided becomes a kernel: one OpSpec per node, addresses as launch
/// arguments, pool or scratchpad.
///
/// Launch arguments, in this order: the graph's inputs, its results that are no inputs, its constants. The
/// caller of the driver sees the same order.
///
/// Needs layouts on every buffer, cut loops, and a place for every local buffer.
Result<Kernel> lower_to_kernel(const DeviceGraph& graph);

/// The buffers behind the launch arguments, in their order.
std::vector<BufferId> launch_buffers(const DeviceGraph& graph);

}  // namespace spyre
