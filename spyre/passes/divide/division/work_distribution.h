#pragma once

#include "spyre/passes/divide/division/division_problem.h"

namespace spyre {

/// Gives the cores to the axes, greedily, on top of the floors. Longest output axis first (in sticks for a
/// stick axis; ties keep iteration order), each takes its largest legal split that the cores still allow;
/// then one reduction axis may take what is left.
///
///     max over dim 0 of [512, 1024]     c1: 16 sticks, out      takes 16 of 32 cores
///                                       r0: 512, reduction      takes the other factor of 2
///
/// The test is on the product of splits, not on what divides the remaining cores: [10, 384] becomes 10 x 3 =
/// 30 cores. A reduction axis that already has a floor is the only one that may grow; otherwise the one that
/// can take most cores does.
///
/// Fails when the mandatory splits cannot be made (see split_rules.h).
Result<Splits> distribute_work(const DivisionProblem& problem, const Splits& floors);

}  // namespace spyre
