#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// One operation of the card per node, constants as tensors.
///
///     v0 = load x[p0]                          t = mul x x          (new buffer t)
///     v1 = square v0                     ->    s = reduce.sum t
///     v2 = reduce.sum v1
///     store s[] v2
///
/// Operations the card lacks become those it has: `ceil` is -floor(-x), integers other than sums and
/// products are computed in fp32, `argmax` is a maximum, a comparison and a minimum over positions, sine and
/// cosine are polynomials in fp32. Each 16-bit operation rounds once; nothing is fused.
///
/// Values that do not depend on a loop are computed without it. A reduction over several loops becomes one
/// reduction per loop. What no recipe reads in the end is dropped.
///
/// Refused: operations without a device form, naming the node and its origin.
Result<DeviceGraph> select_ops(Graph graph);

}  // namespace spyre
