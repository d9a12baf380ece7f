#pragma once

#include "spyre/passes/divide/division/axis_facts.h"

namespace spyre {

/// Why a tensor spans too much, and the smallest change that would make it fit:
///
///     op 'batchmatmul': 'w' spans 384.00 MiB of device memory, a core reaches 256.00 MiB
///       note w is [61, 51562, 64] on the card, 2 bytes an element; splits {k: 1, m: 1, n: 1}
///       note n is 61 sticks long and divides into 1 or 61 parts; 32 cores are available
///       try  padding n to 62 sticks (+1.6 % memory): cut in 2, each part spans 195.15 MiB
///
/// Padding is tried first (up to a quarter more), then running the operation in tiles one after the other.
Error span_error(const DivisionProblem& problem, const DivisionTensor& tensor,
                 const std::vector<AxisFacts>& facts, const Splits& splits);

}  // namespace spyre
