#include "spyre/solve/bounds.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "spyre/solve/fluid.h"
#include "spyre/solve/sections.h"

namespace spyre::solve {

Bytes peak_live_bytes(const Problem& problem) {
  std::map<Step, Bytes> change;
  for (const Buffer& b : problem.buffers) {
    change[b.live.begin] += b.size;
    change[b.live.end] -= b.size;
  }
  Bytes live, peak;
  for (const auto& [step, bytes] : change) {
    live += bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

Bytes unavoidable_off_chip(const Problem& problem) {
  const std::vector<bool> may = placeable(problem);
  std::vector<BufferIndex> allowed;
  for (BufferIndex i = 0; i < std::ssize(problem.buffers); ++i) {
    if (may[i]) allowed.push_back(i);
  }
  Bytes keepable;
  for (const Island& island : cut_islands(problem, allowed)) {
    std::vector<FluidRelaxation::Item> items;
    for (const Item& item : island.items) {
      // A child that takes over a slot needs no room of its own in its first section.
      items.push_back({item.begin + (item.parents.empty() ? 0 : 1), item.end, item.room, item.value});
    }
    FluidRelaxation fluid(island.sections, island.height);
    fluid.solve(items);
    std::vector<double> surplus;
    for (size_t i = 0; i < items.size(); ++i) surplus.push_back(fluid.surplus(i));
    const double bound = fluid.bound() - choices_of(island).excess(surplus);
    keepable += Bytes(int64_t(std::floor(bound * (1 + 1e-12) + 1e-6)));
  }
  return std::max(Bytes(0), bytes_at_stake(problem) - keepable);
}

}  // namespace spyre::solve
