#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"
#include "spyre/passes/layout/layout_choice.h"

namespace spyre {

/// Gives every buffer a device layout, with copies where a node needs another one. Nodes that read the same
/// buffer in the same other layout share the copy.
///
///     a [64, 128] stick on k     b [128, 256] stick on k
///     c = a b                              ->   b' = copy of b, stick on n;   c = a b'
///
/// A layout is a state: which dimension runs along the stick, in which order its elements have their lanes, and how far
/// its rows are padded. Between two states of a buffer copies are the edges (layout_conversion.h), and the choice of all
/// layouts is the cheapest (layout_choice.h). So 32-bit values are transposed beside arithmetic, and a mask widens into the
/// order of the floats it is asked about:
///
///     y = where m x 0     m bool[128, 128]   x float32[128, 128]
///     m' = m with interleaved lanes;   t = dl16tofp32 m';   y = where3 t x 0
///
/// Graphs that only copy are also tried as copies of half-words (move_half_words.h), with steps that end with their
/// dimension (pad_steps.h), and at last element by element (move_elements.h). Where nothing of this is found, a view is read as
/// the whole of its memory (whole_memory.h), and what is computed into places that only copies reach is computed beside them
/// first (stage_results.h).
///
/// Afterwards every buffer has its layout, every constant too (one per layout it is read in), and
/// `normalize_op` accepts every node.
Status assign_layouts(DeviceGraph& graph, const LayoutSearchOptions& options = {});

}  // namespace spyre
