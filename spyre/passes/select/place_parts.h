#pragma once

#include "spyre/graph/graph.h"

namespace spyre {

/// Lets operators write where their results are copied to: a buffer that becomes a part of a concatenation, a stack or a
/// padded tensor is that part from the start.
///
///     call a aten.exp.default(x) -> (a)                  call a aten.exp.default(x) -> (y : [2, 64])
///     call y aten.cat.default({a, b}, 0) -> (y)    ->    call y aten.cat.default({y : [2, 64], b}, 0) -> (y)
///
/// A part that lies where it belongs is not copied by its form. Other readers of the buffer read the part. Buffers that
/// leave the graph, that are parts twice, that have another type, or that loops and not calls touch stay as they are.
void place_parts(Graph& graph);

}  // namespace spyre
