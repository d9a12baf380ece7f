#pragma once

#include "spyre/graph/graph.h"

namespace spyre {

/// Finds x[i, j] with positions that only count, as masks of models have: elements of x where they lie, which a view says.
///
///     node i (p0: 4) { v0 = index p0 : int64 ... }
///     node j (p0: 9) { v0 = index p0 : int64 ... }
///     call y aten.index.Tensor(x, {i : [4, 1] ..., j}) -> (y)     call y aten.clone.default(x) -> (y)
///     call z aten.exp.default(y) -> (z)                       ->  call z aten.exp.default(x) -> (z)
///
/// Positions may start anywhere, stand in views, and have been converted, or moved on by a number. Those that do not exist,
/// step by more than one, or count along one axis for two dimensions (a diagonal) stay positions. Calls behind it read
/// x; the copy stays for whoever else reads it, and is dead code without.
void index_by_views(Graph& graph);

}  // namespace spyre
