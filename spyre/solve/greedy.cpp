#include <algorithm>

#include "spyre/solve/choices.h"
#include "spyre/solve/occupancy.h"
#include "spyre/solve/solvers.h"

namespace spyre::solve {
namespace {

/// Where a buffer goes beside the ranges in its way: address 0, else above all of them, else the first hole.
std::optional<Bytes> lowest_habit(const Buffer& b, Bytes capacity, std::vector<Range> busy) {
  const auto by_begin = [](const Range& x, const Range& y) { return x.begin < y.begin; };
  std::sort(busy.begin(), busy.end(), by_begin);
  if (busy.empty() || busy.front().begin >= b.size) {
    return b.size <= capacity ? std::optional(Bytes(0)) : std::nullopt;
  }
  Bytes top;
  for (const Range& range : busy) top = std::max(top, range.end);
  if (const Bytes above = round_up(top, b.align); above + b.size <= capacity) return above;
  for (const Range& gap : free_gaps(capacity, busy)) {
    const Bytes start = round_up(gap.begin, b.align);
    if (start + b.size <= gap.end) return start;
  }
  return std::nullopt;
}

/// Placing in the order of first steps is the walk over event times: what ended before is not in the way,
/// what starts later is not placed yet.
class Greedy : public Solver {
 public:
  Solution solve(const Problem& problem, Deadline deadline) const override {
    const int64_t units = deadline.left();
    Placement placement =
        place_in_groups(problem, [&](const Problem& asked) { return walk(asked, deadline); });
    return {.placement = std::move(placement), .work = units - deadline.left()};
  }

 private:
  static Placement walk(const Problem& problem, Deadline& deadline) {
    std::vector<BufferIndex> order;
    for (BufferIndex i = 0; i < std::ssize(problem.buffers); ++i) {
      if (problem.buffers[i].ineligible.empty() && !problem.buffers[i].fixed.has_value()) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](BufferIndex a, BufferIndex b) {
      return problem.buffers[a].live.begin < problem.buffers[b].live.begin;
    });
    Occupancy lx(problem);
    for (const BufferIndex id : order) {
      if (lx.alternative_placed(id)) continue;
      const std::vector<Range> busy = lx.busy(id);
      deadline.spend(std::ssize(busy) + 1);
      if (const auto parent = lx.reusable_parent(id)) {
        lx.place(id, lx.offset(*parent));
      } else if (const auto offset = lowest_habit(problem.buffers[id], problem.capacity, busy)) {
        lx.place(id, *offset);
      }
    }
    return lx.placement();
  }
};

}  // namespace

std::unique_ptr<Solver> make_greedy() {
  return std::make_unique<Greedy>();
}

}  // namespace spyre::solve
