#pragma once

#include <vector>

#include "spyre/device/exec/bound_op.h"

/// Which sticks an execute touches, without walking its elements.
///
/// A tensor is a box of steps with strides, so a core's part of it is a few runs of neighbouring sticks. Dims
/// whose stride continues the run below them are merged into it:
///
///     [2 stick columns, 1024 rows], rows 32..64 of both  ->  2 runs of 32 sticks
///     the same tensor whole                              ->  1 run of 2048
namespace spyre::exec {

/// Sticks [first, first + count): byte address divided by 128.
struct StickRun {
  int64_t first = 0, count = 0;
  int64_t end() const { return first + count; }
  friend bool operator==(const StickRun&, const StickRun&) = default;
};
using Footprint = std::vector<StickRun>;

/// Steps along one dim, `stride` sticks apart.
struct StickLevel {
  int64_t stride = 0, count = 0;
};

/// The runs of a box of steps that starts at stick `first`, levels in any order.
Footprint runs_of(int64_t first, std::vector<StickLevel> levels);

/// The sticks of a tensor that hold the coordinates of `box`, as the core at position `core` addresses them.
/// Rows under a sliding window are those the box needs, without the ones in its padding; a table that is
/// addressed through an index is one run, from its first stick to its last.
Footprint footprint(const BoundOp& bound, int tensor, int core, const Box& box);

/// The coordinates a core reads of an input, or writes of the output. A copy leaves out what one of its sides
/// does not have; a search looks at the whole of the searched dim; a relayout has its own slices.
Box touched_box(const BoundOp& bound, int tensor, int core);

/// Positions of the cores that write the result.
std::vector<int> writing_cores(const BoundOp& bound);

/// Whether any stick is in both. Sorts what it is given.
bool overlap(Footprint& a, Footprint& b);

}  // namespace spyre::exec
