#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/graph.h"

namespace spyre {

/// Keeps what lies behind an extent out of results. Loops run over whole sticks, and over more than one call needs, so a
/// fold along an extent also meets memory without meaning; it reads the neutral element of the fold there:
///
///     node s (p0: 4; r0: e0) {               node s (p0: 4; r0: e0) {
///       v0 = load x[1024*p0 + r0]              v0 = load x[1024*p0 + r0]
///                                    ->        inside = index r0 < load n0
///       v1 = reduce.max v0                     v1 = reduce.max where(inside, v0, -inf)
///
/// A mean multiplies by the extent's reciprocal; both operands of a product are zero behind it; a position read from memory without
/// meaning is 0, so that no gather looks for an element that is not there. A scatter writes where positions say, so that
/// behind the extent it writes its first element once more, to the same place. Other elements behind an extent are
/// computed like all others, from what is there, and nobody looks at them.
Status mask_extents(Graph& graph);

}  // namespace spyre
