#pragma once

#include <optional>

#include "spyre/graph/device_graph.h"

/// Copies of 32-bit values as copies of their half-words. The card restickifies, and shifts what lies in sticks, in 16 bits
/// only; a copy moves bits, so half-words do as well:
///
///     x int64[2, 100]   (32 bits on the card)    ->    x_half_words float16[2, 100, 2]      the same sticks, memory_of=x
///
///     y[r, c + 7] = x[r, c]      y[r, q + 14] = x[r, q]            q < 200: both half-words of all c
///     y[c, r] = x[r, c]          s[q, r] = x[r, q];  t[r, h, c] = s[c, h, r];  y[c, q] = t[q, c]
namespace spyre {

/// The graph with its copies of 32-bit values in half-words, where it does nothing else with those values (indices may be
/// computed beside them) and every layout that it is given has its stick along neighbours; none otherwise. Arguments keep their names and layouts, and get a second name for their half-words;
/// results have the layout of `word_layout`. Needs select-ops.
std::optional<DeviceGraph> in_half_words(const DeviceGraph& graph);

/// The layout of an argument of a graph of copies: the one it is given, or the standard one.
Result<DeviceLayout> word_layout(const Buffer& buffer);

}  // namespace spyre
