#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// Gives every local buffer that has no place yet an offset in the bundle's pool of device memory. Buffers
/// whose lives do not meet share bytes.
///
/// First fit in the order of first writes; a life runs from the first node that writes the buffer to the last
/// that touches it.
Status plan_pool(DeviceGraph& graph);

}  // namespace spyre
