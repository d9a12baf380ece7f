#pragma once

#include <optional>

#include "spyre/cost/rates.h"
#include "spyre/device/exec/bound_op.h"

namespace spyre::timing {

/// The rate, bytes per ns with the turnaround inside, at which off-chip memory serves an execute, where
/// upstream fitted one for the way it walks memory (docs/reference/timing.md#access-patterns): restickify,
/// reductions over rows, exchanged dimensions, concatenations, broadcasts, and a row reduction that is the
/// whole program (`alone`). Nothing: it streams.
std::optional<double> pattern_rate(const exec::BoundOp& bound, bool alone, const Rates& rates);

}  // namespace spyre::timing
