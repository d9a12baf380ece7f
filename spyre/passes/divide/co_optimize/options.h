#pragma once

#include <cstdint>
#include <functional>

#include "spyre/lx/objective.h"

namespace spyre {

struct CoOptimizeOptions {
  int64_t cores = 32;
  lx::Objective objective = lx::Objective::kTraffic;
  /// Reductions and matmuls keep the split of what they sum, so that every sum is made in the same order and
  /// every bit of every result stays.
  bool keep_sums = false;
  /// Plans that may be looked at, for every node of the graph. Work, not time: the same graph gives the same
  /// plan everywhere.
  int64_t plans_per_node = 200;
  /// Graphs with at most this many plans are searched whole.
  int64_t search_whole = 2'000;
  std::function<void()> progress;  ///< called for every plan that was looked at
};

}  // namespace spyre
