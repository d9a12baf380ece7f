#pragma once

#include "spyre/base/result.h"
#include "spyre/solve/problem.h"

namespace spyre::solve {

/// The judge of every solver: short, quadratic, and sharing no code with any of them.
///
/// Ok when every placed buffer is allowed, aligned, inside the capacity and at its fixed offset if it has
/// one, and no two buffers that are live at a common step share a byte, unless one took over the other's slot
/// in place (a declared pair on equal bases). Otherwise the error names the first buffer, or pair, that is
/// wrong.
Status validate(const Problem& problem, const Placement& placement);

}  // namespace spyre::solve
