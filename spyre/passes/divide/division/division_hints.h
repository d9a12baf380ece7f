#pragma once

#include "spyre/passes/divide/division/division_problem.h"

namespace spyre {

/// The division the user asked for: `spyre_hint(work_div={"rows": 8})`, resolved to axes by the caller.
///
/// Hints are strict. They are applied in their order on top of the mandatory splits (floors, constraints),
/// and axes without a hint stay at that minimum: nothing is added to fill the cores. A hint that would take
/// more cores than there are is skipped with a warning, so that one hint can serve several operations, the
/// most important axis first:
///
///     {H: 4, Lq: 8, Lk: 8} on 32 cores  ->  H 4, Lq 8; Lk is skipped (256 cores)
///
/// Fails on a hint below 1 or below the floor of its axis, on a blocked axis, on a split that is not allowed
/// or does not divide the axis, and when two reduction axes end up split.
Result<Splits> apply_hints(const DivisionProblem& problem, const Splits& floors);

}  // namespace spyre
