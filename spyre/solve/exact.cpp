#include "spyre/solve/exact.h"

#include <algorithm>

#include "spyre/solve/improve.h"
#include "spyre/solve/solvers.h"

namespace spyre::solve {
namespace {

constexpr int64_t kLargestIsland = 1000;  // items; beyond that one relaxation takes too long

std::vector<BufferId> allowed_buffers(const Problem& problem) {
  std::vector<BufferId> ids;
  for (BufferId i = 0; i < std::ssize(problem.buffers); ++i) {
    if (problem.buffers[i].barred.empty()) ids.push_back(i);
  }
  return ids;
}

/// The offsets a placement gives to an island's items.
std::vector<int64_t> offsets_on(const Island& island, const Placement& placement) {
  std::vector<int64_t> offsets;
  for (const Item& item : island.items)
    offsets.push_back(placement.offset[item.id].value_or(Bytes(-1)).count());
  return offsets;
}

class Exact : public Solver {
 public:
  explicit Exact(SelectTricks tricks) : tricks_(tricks) {}

  Solution solve(const Problem& problem, Deadline deadline) const override {
    const int64_t units = deadline.left();
    std::vector<Placement> seeds;
    for (const auto& heuristic : {make_first_fit(), make_best_fit(), make_greedy()}) {
      const Solution found = heuristic->solve(problem, deadline);
      deadline.spend(found.work);
      seeds.push_back(found.placement);
    }
    std::vector<Island> islands = cut_islands(problem, allowed_buffers(problem));
    std::stable_sort(islands.begin(), islands.end(),
                     [](const Island& a, const Island& b) { return a.items.size() < b.items.size(); });
    Solution solution{.placement = Placement{std::vector<std::optional<Bytes>>(problem.buffers.size())},
                      .optimal = true};
    // Half of the work is kept for windows, unless the search of whole islands ends before.
    Deadline whole(deadline.left() / 2);
    const int64_t given = whole.left();
    for (const Island& island : islands) {
      std::vector<int64_t> best(island.items.size(), -1);
      solution.optimal = search_island(island, seeds, whole, best) && solution.optimal;
      for (size_t i = 0; i < best.size(); ++i) {
        if (best[i] >= 0) solution.placement.offset[island.items[i].id] = Bytes(best[i]);
      }
    }
    deadline.spend(given - whole.left());
    if (!solution.optimal) improve_by_windows(problem, solution.placement, tricks_, deadline);
    solution.work = units - deadline.left();
    return solution;
  }

 private:
  /// The best packing found for an island, by item; true if it is proven best.
  bool search_island(const Island& island, const std::vector<Placement>& seeds, Deadline& deadline,
                     std::vector<int64_t>& best) const {
    int64_t best_value = -1, all = 0;
    for (const Item& item : island.items) all += item.value;
    for (const Placement& seed : seeds) {
      std::vector<int64_t> offsets = offsets_on(island, seed);
      int64_t value = 0;
      for (size_t i = 0; i < offsets.size(); ++i) value += offsets[i] >= 0 ? island.items[i].value : 0;
      if (value > best_value) best_value = value, best = std::move(offsets);
    }
    if (best_value == all) return true;
    if (std::ssize(island.items) > kLargestIsland) return false;
    Selection selection(island, tricks_);
    selection.seed(best);
    selection.run(deadline);
    best = selection.offsets();
    return selection.proven();
  }

  SelectTricks tricks_;
};

}  // namespace

std::unique_ptr<Solver> make_exact(SelectTricks tricks) {
  return std::make_unique<Exact>(tricks);
}

std::unique_ptr<Solver> make_exact() {
  return make_exact(SelectTricks{});
}

}  // namespace spyre::solve
