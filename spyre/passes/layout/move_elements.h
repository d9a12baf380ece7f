#pragma once

#include <optional>

#include "spyre/graph/device_graph.h"

/// Copies element by element, for those that no restickify makes: a token cut out of a row, heads of 32 elements that
/// share a stick, one element to a stick beside its neighbours. On the way every element is alone in a stick, where any
/// order is an order of rows:
///
///     x float16[18, 128], read as [2, 4, 9, 32]      a[r, c] = x[r, c]                 as x lies, one to a stick
///     y[b, h, s, d] = x[9b + s, 32h + d]             e[b, h, s, d] = a[9b + s, 32h + d]
///                                                    y[b, h, s, d] = e[b, h, s, d]     as y lies
///
/// 32-bit values are two elements each. The way costs a stick for each element, so it is the last one tried, and of few
/// elements only.
namespace spyre {

/// The graph with its copies made that way; none where it does something else than copy, or with more than 2^20 elements.
/// Of an input that is written in part the rest comes along. Arguments keep their sticks. Needs select-ops.
std::optional<DeviceGraph> by_elements(const DeviceGraph& graph);

}  // namespace spyre
