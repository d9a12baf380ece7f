#include "spyre/solve/solvers.h"

namespace spyre::solve {
namespace {

/// Exact starts from the fast heuristics itself; annealing is asked only when exact has not proven its
/// answer.
class Portfolio : public Solver {
 public:
  Solution solve(const Problem& problem, Deadline deadline) const override {
    const int64_t units = deadline.left();
    Solution best = make_exact()->solve(problem, Deadline(deadline.left() * 3 / 4));
    deadline.spend(best.work);
    if (!best.optimal) {
      Solution other = make_annealing()->solve(problem, deadline);
      deadline.spend(other.work);
      if (bytes_saved(problem, other.placement) > bytes_saved(problem, best.placement))
        best = std::move(other);
    }
    best.work = units - deadline.left();
    return best;
  }
};

}  // namespace

std::unique_ptr<Solver> make_portfolio() {
  return std::make_unique<Portfolio>();
}

}  // namespace spyre::solve
