#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spyre/graph/normal_op.h"

/// Which core works on which slice.
///
/// A loop cut into `split` slices gives core c the slice  floor(c / step) mod split.  Steps make the cores of
/// a node a mixed-radix number, one digit per split loop:
///
///     {m: 2, n: 4}, steps {1, 2}     core 0 1 2 3 4 5 6 7
///                                    m    0 1 0 1 0 1 0 1
///                                    n    0 0 1 1 2 2 3 3
///
/// Unless a pass says otherwise (`Loop::step`) the first loop varies fastest, and for a matmul the last one,
/// k: cores that share a sum are then neighbours on the ring.
namespace spyre {

/// The loops of a node in the order the card lists them: output loops, then reduced ones; for a matmul
/// batches, m, n, k.
std::vector<int> iteration_order(const NormalOp& op);

/// Steps of loops with these splits, in this order.
std::vector<int64_t> default_core_steps(std::span<const int64_t> splits, bool last_first);

/// The step of every loop of `op.access.loops`: its own, or the default one.
std::vector<int64_t> core_steps(const NormalOp& op);

/// Cores that take part: the product of all splits.
int64_t cores_used(const std::vector<Loop>& loops);
/// The product of what a shuffle leaves behind, `Loop::to_split`. It runs on the larger of both.
int64_t cores_after(const std::vector<Loop>& loops);

/// How many cores hold the tensor of a shuffle before and after it: as many as there are slices, or more, of
/// which several hold the same. Attributes `from_cores` and `to_cores` of the operation.
struct ShuffleCores {
  int64_t from = 1, to = 1;
};
ShuffleCores shuffle_cores(const DeviceOp& op);

}  // namespace spyre
