#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "spyre/base/result.h"
#include "spyre/solve/deadline.h"
#include "spyre/solve/problem.h"

namespace spyre::solve {

struct Solution {
  Placement placement;
  bool optimal = false;  ///< proven: no legal placement saves more
  int64_t work = 0;      ///< units of the deadline that were spent
};

/// Chooses which buffers live in LX, and where.
///
/// Promises: always answers, with a legal placement (see validate.h); the same problem and deadline give the
/// same answer; an ineligible buffer is never placed and a fixed one always is. The problem has passed
/// check_problem.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual Solution solve(const Problem& problem, Deadline deadline) const = 0;
};

/// One row of the registry.
struct SolverRow {
  std::string_view name;     ///< as in the setting LAYOUT_SOLVER
  std::string_view summary;  ///< one line
  std::unique_ptr<Solver> (*make)();
};

/// Every solver, simplest first. Tests and benchmarks walk this table, so a new solver is one line here.
std::span<const SolverRow> all_solvers();

/// The solver of a name; `cpsat`, upstream's name for its exact solver, gives `exact`.
Result<std::unique_ptr<Solver>> make_solver(std::string_view name);

/// Checks the problem, then solves it: the one call a client needs.
Result<Solution> place(const Problem& problem, std::string_view solver = "portfolio",
                       Deadline deadline = Deadline());

}  // namespace spyre::solve
