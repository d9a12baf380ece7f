#include "spyre/solve/occupancy.h"

#include <algorithm>

namespace spyre::solve {

std::vector<Range> free_gaps(Bytes capacity, std::vector<Range> busy) {
  std::sort(busy.begin(), busy.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> gaps;
  Bytes free_from;
  for (const Range& range : busy) {
    if (range.begin > free_from) gaps.push_back({free_from, range.begin});
    free_from = std::max(free_from, range.end);
  }
  if (free_from < capacity) gaps.push_back({free_from, capacity});
  return gaps;
}

Occupancy::Occupancy(const Problem& problem) : problem_(problem) {
  placement_.offset.resize(problem.buffers.size());
  for (BufferIndex i = 0; i < std::ssize(problem.buffers); ++i) {
    if (problem.buffers[i].fixed.has_value()) place(i, *problem.buffers[i].fixed);
  }
}

void Occupancy::place(BufferIndex id, Bytes offset) {
  placement_.offset[id] = offset;
  const Lifetime& live = problem_.buffers[id].live;
  const auto after =
      std::upper_bound(by_begin_.begin(), by_begin_.end(), live.begin,
                       [&](Step at, BufferIndex b) { return at < problem_.buffers[b].live.begin; });
  by_begin_.insert(after, id);
  longest_life_ = std::max(longest_life_, live.end - live.begin);
}

std::vector<Range> Occupancy::busy(BufferIndex id, std::optional<BufferIndex> besides) const {
  const Lifetime& live = problem_.buffers[id].live;
  // A buffer that began before this step is gone when `live` begins.
  const Step earliest = live.begin - longest_life_;
  auto at = std::lower_bound(by_begin_.begin(), by_begin_.end(), earliest,
                             [&](BufferIndex b, Step step) { return problem_.buffers[b].live.begin < step; });
  std::vector<Range> ranges;
  for (; at != by_begin_.end() && problem_.buffers[*at].live.begin < live.end; ++at) {
    if (*at != besides && problem_.buffers[*at].live.meets(live)) ranges.push_back(range(*at));
  }
  return ranges;
}

bool Occupancy::alternative_placed(BufferIndex id) const {
  const Buffer& b = problem_.buffers[id];
  return b.tensor >= 0 && std::any_of(by_begin_.begin(), by_begin_.end(), [&](BufferIndex other) {
           return are_alternatives(b, problem_.buffers[other]);
         });
}

std::optional<BufferIndex> Occupancy::reusable_parent(BufferIndex child) const {
  const Buffer& b = problem_.buffers[child];
  for (const BufferIndex parent : b.in_place_parents) {
    if (!placed(parent) || offset(parent) % b.align != Bytes(0)) continue;
    const Range slot = {offset(parent), offset(parent) + b.size};
    // A sibling that took the slot over before is in the way too, so a slot is handed over once.
    const std::vector<Range> others = busy(child, parent);
    if (std::none_of(others.begin(), others.end(), [&](const Range& r) { return r.meets(slot); }))
      return parent;
  }
  return std::nullopt;
}

}  // namespace spyre::solve
