#pragma once

#include <optional>

#include "spyre/passes/divide/division/division_problem.h"
#include "spyre/passes/divide/division/matmul_score.h"

/// Splits a matmul by trying every (b, m, n, k) and taking the lowest score of matmul_score.h, the first met
/// on ties (batch, then m, n, k; splits ascending).
///
/// Which axis plays which part is read off the tensors; axes of extent 1 play none:
///
///     N      the axis along the stick of the output
///     K      the axis that the output lacks
///     M      of the other output axes, the one that only one input has. When several are (a 2-D weight that
///            serves every batch), the last in iteration order, which lies innermost in the output
///     batch  the rest
///
/// The weight is shared when several axes could be M or when there is no batch.
namespace spyre {

/// The planner's choice, or nothing when it leaves the matmul to the default distribution: an axis has no
/// role or two (M = 1 is the common case: no axis is left to be M), elements are neither 16 nor 8 bits, no
/// split is legal, or the choice would use fewer cores than the default. With an 8-bit weight K stays whole
/// and the choice stands even then.
///
/// Meant for matmuls without floors and hints; constraints are respected.
std::optional<Splits> plan_matmul(const DivisionProblem& problem);

/// The score of any split of a matmul, or nothing when its axes have no roles or the split takes too many
/// cores.
std::optional<MatmulScore> matmul_score(const DivisionProblem& problem, const Splits& splits);

}  // namespace spyre
