#pragma once

#include "spyre/graph/device_graph.h"

namespace spyre {

/// Removes nodes whose result nobody needs, and local buffers and constants that nobody touches.
///
///     t = exp x;  y = neg x;  return y     ->     y = neg x;  return y
///
///     t = exp x;  t = neg x;  return t     ->     t = neg x;  return t     where the second store writes all of t
///
/// Stores into inputs always stay. Loops of one step count nothing: indices no longer name them.
void eliminate_dead_code(Graph& graph);
void eliminate_dead_code(DeviceGraph& graph);

}  // namespace spyre
