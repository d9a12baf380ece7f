#include <algorithm>
#include <queue>

#include "spyre/solve/choices.h"
#include "spyre/solve/occupancy.h"
#include "spyre/solve/solvers.h"

namespace spyre::solve {
namespace {

/// Ascending: a short life with many uses first. In-place partners get a quarter step each, a saved write
/// counts as half a use (docs/reference/placement.md#fit).
double priority(const Buffer& b, bool is_parent) {
  const double discount = (b.in_place_parents.empty() ? 0 : 0.25) + (is_parent ? 0.25 : 0);
  const double uses = double(b.uses) + (b.input ? 0 : 0.5);
  return (double(b.live.length()) - discount) / uses;
}

/// The buffers that may be placed, by priority, ties by life, then by position; parents before children.
std::vector<BufferIndex> placement_order(const Problem& problem) {
  const auto& buffers = problem.buffers;
  const auto takes_part = [&](BufferIndex i) {
    return buffers[i].ineligible.empty() && !buffers[i].fixed.has_value();
  };
  std::vector<std::vector<BufferIndex>> children(buffers.size());
  std::vector<int> waits_for(buffers.size());
  std::vector<bool> is_parent(buffers.size());
  for (BufferIndex i = 0; i < std::ssize(buffers); ++i) {
    for (const BufferIndex parent : buffers[i].in_place_parents) {
      is_parent[parent] = true;
      if (!takes_part(parent)) continue;
      children[parent].push_back(i);
      ++waits_for[i];
    }
  }
  using Key = std::tuple<double, int64_t, BufferIndex>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  const auto push = [&](BufferIndex i) {
    ready.push({priority(buffers[i], is_parent[i]), buffers[i].live.length(), i});
  };
  for (BufferIndex i = 0; i < std::ssize(buffers); ++i) {
    if (takes_part(i) && waits_for[i] == 0) push(i);
  }
  std::vector<BufferIndex> order;
  while (!ready.empty()) {
    const BufferIndex next = std::get<BufferIndex>(ready.top());
    ready.pop();
    order.push_back(next);
    for (const BufferIndex child : children[next]) {
      if (--waits_for[child] == 0 && takes_part(child)) push(child);
    }
  }
  return order;
}

enum class GapPolicy { kFirst, kSmallestRest };

std::optional<Bytes> choose_gap(const Buffer& b, const std::vector<Range>& gaps, GapPolicy policy) {
  std::optional<Bytes> best;
  Bytes best_rest;
  for (const Range& gap : gaps) {
    const Bytes start = round_up(gap.begin, b.align);
    if (start + b.size > gap.end) continue;
    if (policy == GapPolicy::kFirst) return start;
    const Bytes rest = gap.end - (start + b.size);
    if (!best.has_value() || rest < best_rest) best = start, best_rest = rest;
  }
  return best;
}

class Fit : public Solver {
 public:
  explicit Fit(GapPolicy policy) : policy_(policy) {}

  Solution solve(const Problem& problem, Deadline deadline) const override {
    const int64_t units = deadline.left();
    Placement placement =
        place_in_groups(problem, [&](const Problem& asked) { return fit(asked, deadline); });
    return {.placement = std::move(placement), .work = units - deadline.left()};
  }

 private:
  Placement fit(const Problem& problem, Deadline& deadline) const {
    Occupancy lx(problem);
    for (const BufferIndex id : placement_order(problem)) {
      if (lx.alternative_placed(id)) continue;
      if (const auto parent = lx.reusable_parent(id)) {
        lx.place(id, lx.offset(*parent));
        continue;
      }
      const std::vector<Range> busy = lx.busy(id);
      deadline.spend(std::ssize(busy) + 1);
      if (const auto offset = choose_gap(problem.buffers[id], free_gaps(problem.capacity, busy), policy_)) {
        lx.place(id, *offset);
      }
    }
    return lx.placement();
  }

  GapPolicy policy_;
};

}  // namespace

std::unique_ptr<Solver> make_first_fit() {
  return std::make_unique<Fit>(GapPolicy::kFirst);
}

std::unique_ptr<Solver> make_best_fit() {
  return std::make_unique<Fit>(GapPolicy::kSmallestRest);
}

}  // namespace spyre::solve
