#pragma once

#include <memory>

#include "spyre/solve/select.h"
#include "spyre/solve/solver.h"

namespace spyre::solve {

/// Branch and bound that answers at any time and says when its answer is proven best.
///
/// The problem falls apart where no buffer crosses (*islands*); each island is searched on its own, easy ones
/// first, starting from what first and best fit find. See select.h for the search, pack.h for addresses,
/// fluid.h for the bound. Islands too large for that are improved window by window (improve.h).
std::unique_ptr<Solver> make_exact(SelectTricks tricks);

}  // namespace spyre::solve
