#pragma once

#include "spyre/base/result.h"
#include "spyre/base/units.h"
#include "spyre/graph/device_graph.h"

namespace spyre::lx {

/// What no plan can avoid: what is read of every input and written of every result, each stick once. Never more than
/// `read` and `written` of the graph's cost (plan_cost.h). Of a table that is gathered from that is a row for each entry.
Result<Bytes> compulsory_bytes(const DeviceGraph& graph);

}  // namespace spyre::lx
