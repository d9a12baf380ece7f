#pragma once

#include <cstddef>

#include "spyre/base/result.h"
#include "spyre/graph/graph.h"

namespace spyre {

/// Whether a call means the same for any extent of its tensors. A form sees an extent as its capacity, a number like any
/// other, and may compute with it: the scale of attention from the width of a head, the divisor of a mean. Such a form
/// holds for one size only.
///
/// Found by trying: the call is expanded again with other capacities. Loops, strides and element positions may then
/// differ; a constant, an attribute, an index value or the number of steps may not. The scaling factor of `reduce.mean`
/// may, because the pass `mask-extents` divides by the extent itself.
///
/// `first` is the first of the nodes that `call` has become in `graph`. A graph without extents is not looked at.
Status probe_extents(const Graph& graph, const Node& call, size_t first);

}  // namespace spyre
