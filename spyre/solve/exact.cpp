#include "spyre/solve/exact.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "spyre/solve/improve.h"
#include "spyre/solve/solvers.h"

namespace spyre::solve {
namespace {

constexpr int64_t kLargestIsland = 500;  // items; beyond that one relaxation takes too long

std::vector<BufferIndex> allowed_buffers(const Problem& problem) {
  const std::vector<bool> may = placeable(problem);
  std::vector<BufferIndex> ids;
  for (BufferIndex i = 0; i < std::ssize(problem.buffers); ++i) {
    if (may[i]) ids.push_back(i);
  }
  return ids;
}

/// One island, and the search that is under way on it. Stays where it is: the search refers to the island.
class IslandSearch {
 public:
  IslandSearch(Island island, const SelectTricks& tricks) : island_(std::move(island)), tricks_(tricks) {
    std::vector<double> values;
    for (const Item& item : island_.items) values.push_back(double(item.value));
    for (const double value : values) all_ += int64_t(value);
    all_ -= std::llround(choices_of(island_).excess(values));
  }

  int64_t size() const { return std::ssize(island_.items); }

  /// Takes a placement's part in this island if it is the best so far.
  void seed(const Placement& placement) {
    std::vector<int64_t> offsets;
    int64_t value = 0;
    for (const Item& item : island_.items) {
      offsets.push_back(placement.offset[item.id].value_or(Bytes(-1)).count());
      value += offsets.back() >= 0 ? item.value : 0;
    }
    if (value > value_) value_ = value, offsets_ = std::move(offsets);
  }

  /// Searches on; true when the best is proven.
  bool run(Deadline& deadline) {
    if (value_ == all_) return true;
    if (size() > kLargestIsland) return false;
    if (!selection_.has_value()) selection_.emplace(island_, tricks_);
    selection_->seed(offsets_);
    selection_->run(deadline);
    offsets_ = selection_->offsets();
    value_ = selection_->value();
    return selection_->proven();
  }

  void write(Placement& placement) const {
    for (size_t i = 0; i < offsets_.size(); ++i) {
      const bool kept = offsets_[i] >= 0;
      placement.offset[island_.items[i].id] = kept ? std::optional(Bytes(offsets_[i])) : std::nullopt;
    }
  }

 private:
  Island island_;
  SelectTricks tricks_;
  std::optional<Selection> selection_;
  std::vector<int64_t> offsets_;
  int64_t value_ = -1, all_ = 0;
};

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
    std::vector<std::unique_ptr<IslandSearch>> searches;
    for (Island& island : cut_islands(problem, allowed_buffers(problem))) {
      searches.push_back(std::make_unique<IslandSearch>(std::move(island), tricks_));
      for (const Placement& seed : seeds) searches.back()->seed(seed);
    }
    std::stable_sort(searches.begin(), searches.end(),
                     [](const auto& a, const auto& b) { return a->size() < b->size(); });
    Solution solution{.placement = Placement{std::vector<std::optional<Bytes>>(problem.buffers.size())}};
    // Windows may find what the search of whole islands has not, and then it goes on from there.
    Deadline half(deadline.left() / 2);
    const int64_t given = half.left();
    solution.optimal = run_all(searches, half, solution.placement);
    deadline.spend(given - half.left());
    if (!solution.optimal) {
      improve_by_windows(problem, solution.placement, tricks_, deadline);
      for (const auto& search : searches) search->seed(solution.placement);
      solution.optimal = run_all(searches, deadline, solution.placement);
    }
    solution.work = units - deadline.left();
    return solution;
  }

 private:
  /// True if the best of every island is proven.
  static bool run_all(std::vector<std::unique_ptr<IslandSearch>>& searches, Deadline& deadline,
                      Placement& placement) {
    bool proven = true;
    for (const auto& search : searches) {
      proven = search->run(deadline) && proven;
      search->write(placement);
    }
    return proven;
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
