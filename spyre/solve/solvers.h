#pragma once

#include <memory>

#include "spyre/solve/solver.h"

namespace spyre::solve {

/// Upstream's solvers, decision for decision (docs/reference/placement.md). `saves` plays no
/// part in the first three; fixed buffers, which upstream does not have, are in place before they start.

/// Walks the schedule; each buffer goes where it fits when it appears: its parent's slot, address 0, above
/// the highest live byte, the first hole.
std::unique_ptr<Solver> make_greedy();

/// Sees all buffers first and places short, often used ones before long, rarely used ones, each in the first
/// gap that is large enough during its whole life.
std::unique_ptr<Solver> make_first_fit();

/// The same order, but in the gap that leaves the smallest rest.
std::unique_ptr<Solver> make_best_fit();

/// Simulated annealing over the order in which buffers are stacked; starts from first fit.
std::unique_ptr<Solver> make_annealing();

/// Ours: branch and bound, see exact.h.
std::unique_ptr<Solver> make_exact();

/// Ours, the default: the fast ones first, exact with the work that is left, the best answer of all.
std::unique_ptr<Solver> make_portfolio();

}  // namespace spyre::solve
