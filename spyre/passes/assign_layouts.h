#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/graph.h"
#include "spyre/passes/layout_choice.h"

namespace spyre {

/// Gives every buffer a device layout, with copies where a node needs another one. Nodes that read the same
/// buffer in the same other layout share the copy.
///
///     a [64, 128] stick on k     b [128, 256] stick on k
///     c = a b                              ->   b' = copy of b, stick on n;   c = a b'
///
/// Where nothing else helps, values that are widened beside 32-bit ones from elsewhere are woven first, so
/// that they widen into the standard order (ADR 0018):
///
///     y = where m x 0     m bool[128, 128]   x float32[128, 128]
///     m' = m turned, rows woven, turned back;   t = dl16tofp32 m';   y = where3 t x 0
///
/// and values converted in rows that end inside a stick get rows of whole sticks (whole_converted_rows.h).
///
/// Where nothing but 32-bit values is copied, and the card cannot as it should, halves of them are
/// (move_halves.h); and copies that no turn of sticks makes go element by element (move_elements.h).
///
/// Afterwards every buffer has its layout, every constant too (one per layout it is read in), and
/// `normalize_op` accepts every node.
Status assign_layouts(Graph& graph, const LayoutSearchOptions& options = {});

}  // namespace spyre
