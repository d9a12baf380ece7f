#include <algorithm>
#include <cmath>
#include <random>

#include "spyre/solve/solvers.h"
#include "spyre/solve/stacking.h"

namespace spyre::solve {
namespace {

/// Temperatures of one run: four cycles, each falling geometrically through the range in which a typical loss
/// is accepted with probability 0.8 at its start and 0.01 at its end (docs/reference/placement.md#annealing).
class Cooling {
 public:
  explicit Cooling(int64_t steps) : cycle_(std::max<int64_t>(1, steps / 4)) {}

  void observe(double change) {
    if (change == 0) return;
    typical_ = seen_ == 0
                   ? change
                   : typical_ + (change - typical_) * std::max(2.0 / double(cycle_), 1.0 / double(seen_ + 1));
    ++seen_;
  }
  double temperature(int64_t step) const {
    const double hot = -1 / std::log(0.8), cold = -1 / std::log(0.01);
    const double progress = double(step % cycle_) / double(cycle_);
    return typical_ * hot * std::pow(cold / hot, progress);
  }

 private:
  int64_t cycle_;
  int64_t seen_ = 0;
  double typical_ = 0;
};

class Annealing : public Solver {
 public:
  Solution solve(const Problem& problem, Deadline deadline) const override {
    const int64_t units = deadline.left();
    const Solution start = make_first_fit()->solve(problem, deadline);
    deadline.spend(start.work);
    Placement best = start.placement;
    Bytes best_saved = bytes_saved(problem, best);
    const Bytes all = bytes_at_stake(problem);
    if (best_saved < all) anneal(problem, all, deadline, best, best_saved);
    return {.placement = std::move(best), .optimal = best_saved == all, .work = units - deadline.left()};
  }

 private:
  static std::vector<BufferIndex> by_address(const Stacking& stacking, const Placement& placement) {
    std::vector<BufferIndex> order = stacking.movable();
    std::stable_sort(order.begin(), order.end(), [&](BufferIndex a, BufferIndex b) {
      const auto &x = placement.offset[a], &y = placement.offset[b];
      return x.has_value() != y.has_value() ? x.has_value() : x < y;
    });
    return order;
  }

  static void anneal(const Problem& problem, Bytes all, Deadline& deadline, Placement& best,
                     Bytes& best_saved) {
    Stacking stacking(problem);
    deadline.spend(std::ssize(problem.buffers) * std::ssize(stacking.movable()));
    std::vector<BufferIndex> order = by_address(stacking, best);
    const int64_t n = std::ssize(order);
    const int64_t steps = 8 * std::clamp<int64_t>(30 * n, 500, 5000);
    Bytes saved = stacking.stack(order);
    Cooling cooling(steps);
    std::mt19937_64 random(0);
    for (int64_t step = 0; step < steps && n > 1 && best_saved < all && !deadline.passed(); ++step) {
      std::vector<BufferIndex> other = order;
      const int64_t from = int64_t(random() % uint64_t(n)), to = int64_t(random() % uint64_t(n));
      if (from < to) std::rotate(other.begin() + from, other.begin() + from + 1, other.begin() + to + 1);
      if (to < from) std::rotate(other.begin() + to, other.begin() + from, other.begin() + from + 1);
      const Bytes found = stacking.stack(other);
      deadline.spend(stacking.work());
      if (found > best_saved) best_saved = found, best = stacking.placement();
      const double loss = double((saved - found).count());
      cooling.observe(std::abs(loss));
      const double chance = double(random() >> 11) * 0x1p-53;
      if (loss <= 0 || chance < std::exp(-loss / cooling.temperature(step))) {
        order = std::move(other);
        saved = found;
      }
    }
  }
};

}  // namespace

std::unique_ptr<Solver> make_annealing() {
  return std::make_unique<Annealing>();
}

}  // namespace spyre::solve
