#pragma once

#include "spyre/base/units.h"
#include "spyre/cost/rates.h"

namespace spyre {

/// Partial sums of a reduction split over k cores travel k - 1 steps along the ring, each over `hops` links;
/// only the last core ends with the sum. With K-fast core numbering the cores are neighbours: one hop.
///
///     core 0 --> core 1 --> core 2 --> core 3 (holds the sum)
Nanos ring_chain_time(Bytes partial, int k, int hops, const Rates& rates);

/// Moving a tensor between two divisions of the cores without leaving the chip (docs/reference/timing.md#relayout,
/// within 25 %): a cost per contiguous piece, growing with the split of the finer view, and the bytes
/// themselves. `run` is the contiguous length of a piece; never overlapped with other work.
Nanos relayout_time(Bytes bytes, int cores, Bytes run, int split, const Rates& rates);

/// A matmul operand that `copies` groups of cores each load for themselves, at what one core gets on its own.
/// One copy streams at the full one-way rate.
Nanos replicated_load_time(Bytes bytes, int copies, int cores, const Rates& rates);

}  // namespace spyre
