#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/graph.h"

namespace spyre {

/// Puts the nodes of its form (`spyre/forms`) where a call stood.
///
///     call y aten.sigmoid.default(x) -> (y)     ->     node y (p0: 64) { v0 = load x[p0]  v1 = sigmoid v0  ... }
///
/// The nodes have the call's name, by which refusals of later passes are traced back, its operator and its place in the
/// source; wished splits go to every loop that steps through a dimension of the result. Results that nobody reads are
/// computed here and dropped by eliminate-dead-code.
///
/// Refused: calls of operators without a form, or with arguments that their form does not take, naming the call. Leaves
/// no call behind.
Status expand_calls(Graph& graph);

}  // namespace spyre
