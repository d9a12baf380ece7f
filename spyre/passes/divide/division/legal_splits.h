#pragma once

#include <cstddef>
#include <functional>

#include "spyre/passes/divide/division/division_problem.h"

namespace spyre {

/// Every division that may be proposed (`is_legal` of split_rules.h), for planners that choose among them.
/// Order: axes in iteration order, splits ascending, the last axis fastest.
///
///     {x: 8, y: 16} on 32 cores  ->  {1, 1} {1, 2} {1, 4} {1, 8} {1, 16} {2, 1} ... {8, 4}   (17)
///
/// At most `limit` are returned, the first in this order. An operation without a legal division gives none.
Result<std::vector<Splits>> legal_splits(const DivisionProblem& problem, const Splits& floors, size_t limit);

/// What a division costs; any unit, smaller is better.
using SplitCost = std::function<double(const DivisionProblem&, const Splits&)>;

/// The cheapest legal division. `seed` wins ties, so the answer is never worse than the seed, and stands when
/// nothing is legal.
Result<Splits> cheapest_split(const DivisionProblem& problem, const Splits& floors, const Splits& seed,
                              const SplitCost& cost);

}  // namespace spyre
