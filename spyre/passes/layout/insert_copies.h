#pragma once

#include <vector>

#include "spyre/graph/device_graph.h"
#include "spyre/passes/layout/layout_choice.h"

namespace spyre {

/// Writes a choice into the graph it was made for: layouts on buffers, and copies before the nodes that read a buffer in
/// another layout than it has. A copy is made once for all its readers, until the buffer is written again.
void insert_copies(DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
                   Conversions& conversions, const LayoutChoice& choice);

}  // namespace spyre
