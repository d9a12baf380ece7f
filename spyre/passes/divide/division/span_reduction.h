#pragma once

#include "spyre/passes/divide/division/division_problem.h"

namespace spyre {

/// The smallest splits that bring every tensor within the span limit, as far as splits can: the *floors* that
/// later choices may raise but not lower. Axes without a floor have 1.
///
/// Tensors are visited in order, and what one needs holds for the next. For a tensor over the limit, its
/// device dimensions are visited from the outermost in (only the outermost with two positions counts, see
/// span.h):
///
///     device [4, 4000000, 64], limit 256 MiB, 32 cores
///       dimension 0: no split fits (1.9 GiB ... 488 MiB); take the smallest span: 4, one position left
///       dimension 1: 2 is the fewest cores that fit (244 MiB)                     -> {a: 4, b: 2}
///
/// Among splits of one dimension that fit, those with the smallest product win, then the largest span. A
/// dimension that keeps two positions after its best split ends the search: nothing below it can help, and
/// the tensor stays over the limit. That is not an error here, because tiling the operation may still help;
/// `check_spans` has the last word.
///
/// Fails when two reduction axes would have to be split, for the card combines partial results of one.
Result<Splits> span_floors(const DivisionProblem& problem);

}  // namespace spyre
