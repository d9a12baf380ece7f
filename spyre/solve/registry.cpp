#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "spyre/solve/solver.h"
#include "spyre/solve/solvers.h"

namespace spyre::solve {
namespace {

const std::array kSolvers = {
    SolverRow{"greedy", "walks the schedule, places each buffer where it fits when it appears", make_greedy},
    SolverRow{"firstfit", "short, often used buffers first, each in the first gap", make_first_fit},
    SolverRow{"bestfit", "the same order, each in the tightest gap", make_best_fit},
    SolverRow{"simulated_annealing", "anneals the order in which buffers are stacked", make_annealing},
    SolverRow{"exact", "branch and bound; says when its answer is proven best", make_exact},
    SolverRow{"portfolio", "the fast ones first, exact with the work that is left", make_portfolio},
};

}  // namespace

std::span<const SolverRow> all_solvers() {
  return kSolvers;
}

Result<std::unique_ptr<Solver>> make_solver(std::string_view name) {
  const std::string_view wanted = name == "cpsat" ? "exact" : name;
  const auto row =
      std::find_if(kSolvers.begin(), kSolvers.end(), [&](const SolverRow& r) { return r.name == wanted; });
  if (row != kSolvers.end()) return row->make();
  std::string names;
  for (const SolverRow& r : kSolvers) names += fmt::format("{}{}", names.empty() ? "" : ", ", r.name);
  return Error(ErrorKind::kNotFound,
               fmt::format("there is no placement solver '{}': expected one of {}", name, names));
}

Result<Solution> place(const Problem& problem, std::string_view solver, Deadline deadline) {
  SPYRE_TRY(check_problem(problem));
  SPYRE_ASSIGN_OR_RETURN(const std::unique_ptr<Solver> chosen, make_solver(solver));
  return chosen->solve(problem, deadline);
}

}  // namespace spyre::solve
