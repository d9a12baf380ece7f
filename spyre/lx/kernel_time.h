#pragma once

#include "spyre/base/result.h"
#include "spyre/cost/rates.h"
#include "spyre/graph/device_graph.h"

namespace spyre::lx {

/// How long a graph with every decision made keeps the card: the planner's closed form for the event model of
/// device/timing, which plays the artifact.
///
/// Operations compute one after the other. While one computes, the next loads what it needs from device memory and those
/// before store what they made; all of them share the memory, one request after the other. Who reads what was stored waits
/// for it.
///
///     memory    load a | load b        | store a | store b
///     cores            | a         | b           |
Result<Nanos> kernel_time(const DeviceGraph& graph);

}  // namespace spyre::lx
