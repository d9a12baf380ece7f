#pragma once

#include "spyre/cost/memory.h"
#include "spyre/cost/rates.h"

namespace spyre {

/// What one bundle (fused kernel) does, summed up. Bundles are the unit of prediction: parts of one overlap,
/// shared inputs count once, so a bundle's time is not the sum of its operations' times.
struct BundleWork {
  Nanos compute;          ///< matrix arithmetic; vector arithmetic is free
  Nanos memory;           ///< off-chip traffic, by streaming_time or an access pattern's rate
  double efficiency = 1;  ///< of coarse tiles, above 1 counts as 1 (memory.h)
  double spill = 1;       ///< derate of tiles past the LX knee
  Bytes reread;           ///< loop-invariant operands fetched again by later iterations
  Nanos relayout;         ///< on-chip moves between divisions; nothing hides them
};

/// Time on the card:
///
///     memory' = memory / efficiency / spill + 0.85 * reread / 150
///     kernel  = compute + memory' - overlap * min(compute, memory') + relayout
Nanos kernel_time(const BundleWork& work, const Rates& rates);

}  // namespace spyre
