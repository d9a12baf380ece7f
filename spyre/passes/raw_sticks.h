#pragma once

#include <optional>

#include "spyre/graph/graph.h"

/// Copies of 32-bit values between arguments whose sticks run along any dimension, as copies of what lies in
/// the sticks. Every argument becomes rows of 64 halves in the order of its memory, and an element is where
/// its layout puts it:
///
///     x float32[4, 5], sticks along its rows           x float16[5, 64]      the same sticks
///     y float32[4, 5], along its columns               y float16[4, 64]
///     y[r, c] = x[r, c]                                y[r, 2c + h] = x[c, 2r + h]
namespace spyre {

/// The graph seen that way, for `by_elements`; none where it does something else than copy 32-bit arguments
/// in the standard order. Needs select-ops.
std::optional<Graph> raw_sticks(const Graph& graph);

}  // namespace spyre
