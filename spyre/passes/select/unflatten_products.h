#pragma once

#include "spyre/graph/graph.h"

namespace spyre {

/// Gives matrix products back the axes that PyTorch merged: `linear` on [b, s, k] is captured as a product of [b*s, k].
///
///     x [2, 96, 512], y [192, 64]     call y aten.mm.default(x : [192, 512] stride=[512, 1], w) -> (y)
///     y [2, 96, 64]              ->   call y aten.mm.default(x, w : [1, 512, 64] ...) -> (y)
///
/// So loops are dimensions of every operand, as in the operators around the product, and cores divide them alike. An
/// operand of a stack of products that was copied only to be merged is read where it was copied from.
///
/// Only buffers that live inside the graph get other dimensions, and only where no call reads them as merged; the order
/// of their elements stays.
void unflatten_products(Graph& graph);

}  // namespace spyre
