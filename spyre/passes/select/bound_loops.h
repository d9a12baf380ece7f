#pragma once

#include <cstddef>

#include "spyre/base/result.h"
#include "spyre/graph/graph.h"

namespace spyre {

/// Finds how far the loops of an operator's form run at launch. Forms know sizes as numbers, and an extent as its
/// capacity; what they walk says which of those numbers are extents:
///
///     x : float16[e0, 512]     node (p0: 1024, p1: 512) { load x[512*p0 + p1] ...  }     ->     p0: e0
///
/// Visits the nodes from `first` on, which are the steps of one call, and the buffers from `first_own` on, which only
/// they use. A loop that walks no dimension with an extent runs as far as those who read what it makes, or over all of
/// its capacity.
///
/// Refused is what uses an extent other than as the length of a loop: elements counted from the end or moved along the
/// dimension (flip, roll, a cumulative sum), a dimension merged with another.
Status bound_loops(Graph& graph, size_t first, BufferId first_own);

}  // namespace spyre
