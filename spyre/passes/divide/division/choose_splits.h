#pragma once

#include "spyre/passes/divide/division/legal_splits.h"

namespace spyre {

/// How the work of one operation is divided over the cores: one split per axis.
///
///     1. floors    what every tensor needs to stay within the span limit         span_reduction.h
///     2. hints     if the user gave any, they are the answer                     division_hints.h
///     3. matmul    a matmul without floors is planned by its score               matmul_split.h
///     4. default   everything else: longest output axis first                    work_distribution.h
///     5. check     every span again, whoever decided                             span.h
///
/// With a `cost`, the answer of 3 or 4 is only the seed: every legal division is priced and the cheapest
/// wins, the seed on ties. Hinted operations keep their hints.
Result<Splits> choose_splits(const DivisionProblem& problem, const SplitCost& cost = nullptr);

}  // namespace spyre
