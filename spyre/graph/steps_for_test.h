#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "spyre/graph/graph.h"

/// The walk over a node's loops, for tests that say what a graph computes. What one step does is theirs: a captured
/// node has a body (forms/form_call_for_test.h), a node of the device graph one operation of the card
/// (passes/select/device_run_for_test.h).
namespace spyre::test {

using Point = std::map<std::string, int64_t, std::less<>>;

/// Where a step stands, and whether it is the first or the last of those that are reduced to one result.
struct Step {
  const Point& at;
  bool first;
  bool last;
};

/// Every step, in order. Reduced loops run inside the others, so that the steps of one result follow each other.
template <typename Visit>
void for_each_step(const std::vector<Loop>& loops, const Visit& visit) {
  std::vector<Loop> order;
  for (const bool reduced : {false, true}) {
    for (const Loop& loop : loops) {
      if (loop.reduced == reduced) {
        order.push_back(loop);
      }
    }
  }
  Point at;
  for (const Loop& loop : order) {
    at[loop.name] = 0;
  }
  const auto reduced_stand_at = [&](auto&& place_in) {
    for (const Loop& loop : order) {
      if (loop.reduced && at[loop.name] != place_in(loop)) {
        return false;
      }
    }
    return true;
  };
  while (true) {
    visit(Step{.at = at,
               .first = reduced_stand_at([](const Loop&) { return int64_t{0}; }),
               .last = reduced_stand_at([](const Loop& loop) { return loop.extent - 1; })});
    size_t i = order.size();
    while (i > 0 && ++at[order[i - 1].name] == order[i - 1].extent) {
      at[order[--i].name] = 0;
    }
    if (i == 0) {
      return;
    }
  }
}

}  // namespace spyre::test
