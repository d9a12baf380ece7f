#pragma once

#include <optional>

#include "spyre/graph/device_graph.h"

/// What is computed into memory that was there before, by way of a buffer of its own.
///
/// A tensor that is written in place lies as it lies: every third element of a row, one column of a matrix. No operation but a
/// copy writes such places, and copies have ways that others have not: as half-words, in whole steps, element by element
/// (move_half_words.h, pad_steps.h, move_elements.h). So the graph is cut in two, with a layout between them that both know:
///
///     x[3*p0 + 2] = i32 m[p0]        computed   r[p0] = i32 m[p0];   t[p0] = r[p0]       t as a fresh tensor lies
///                                    copied     x[3*p0 + 2] = t[p0]
namespace spyre {

/// Two graphs: one that computes, with all buffers of the graph that was cut, and one of copies before or behind it. The
/// first buffers of `copied` are buffers of `computed`, and `shared` says which.
struct StagedGraph {
  DeviceGraph computed, copied;
  std::vector<BufferId> shared;
  bool copies_first = false;
};

/// None where no operation but copies writes to inputs, or where something written is read afterwards. Needs select-ops.
std::optional<StagedGraph> stage_results(const DeviceGraph& graph);

/// One graph again, with the results of `graph`, when both have their layouts.
DeviceGraph joined(const DeviceGraph& graph, StagedGraph staged);

}  // namespace spyre
