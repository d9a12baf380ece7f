#pragma once

#include "spyre/graph/graph.h"

namespace spyre {

/// Makes a graph one for all calls up to the most that its extents allow, where memory has room for more:
///
///     extent e0 <= 128 room=1024          x : float16[e0, 64]          node y (p0: e0, p1: 64)
///                                                  |                            |
///                                     1024 rows, as they lie           128 iterations
///
/// Loops along an extent are that long, and so are the buffers of the graph's own; inputs and results keep their room,
/// because others use them, too. What a product reads of them is copied first: operands of products are turned to other
/// sticks, and only whole buffers are. From here on nothing has an extent: sizes and loops are numbers.
void cut_extents(Graph& graph);

}  // namespace spyre
