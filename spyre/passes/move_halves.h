#pragma once

#include <optional>

#include "spyre/graph/graph.h"

/// Copies of 32-bit values as copies of their 16-bit halves. The card turns sticks, and shifts what lies in
/// them, in 16 bits only; a copy moves bits, so halves do as well:
///
///     x int64[2, 100]   (32 bits on the card)    ->    x float16[2, 100, 2]      the same sticks
///
///     y[r, c + 7] = x[r, c]      y[r, q + 14] = x[r, q]            q < 200: both halves of all c
///     y[c, r] = x[r, c]          s[q, r] = x[r, q];  t[r, h, c] = s[c, h, r];  y[c, q] = t[q, c]
namespace spyre {

/// The graph in halves, where it does nothing but copy 32-bit values and every layout that it is given has
/// its stick along neighbours; none otherwise. Results have the layout of `word_layout`. Needs select-ops.
std::optional<Graph> in_halves(const Graph& graph);

/// The layout of an argument of such a graph, in 32-bit words: the one it is given, or the standard one.
Result<DeviceLayout> word_layout(const Buffer& buffer);

}  // namespace spyre
