#pragma once

#include <functional>
#include <string>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/graph/graph.h"
#include "spyre/passes/plan_scratchpad.h"
#include "spyre/passes/scratchpad/plan_cost.h"

namespace spyre {

struct CoOptimizeOptions {
  int64_t cores = 32;
  ScratchpadOptions scratchpad;
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

/// What the search found, under the model of scratchpad/plan_cost.h.
struct CoOptimizeReport {
  PlanCost separate;      ///< divisions first, then scratchpads
  PlanCost joint;         ///< what is in the graph now
  int64_t evaluated = 0;  ///< plans looked at
  bool exact = false;     ///< all of them: no other choice of legal divisions is better

  std::string to_text() const;
  Json to_json() const;
};

/// Chooses the divisions of all nodes together with what stays in LX.
///
///     seeds on 32 cores       max    columns / 16, rows / 2      (512 x 1024, over the rows)
///                             sub    rows / 32                    m, d, e and s pass through device memory
///     chosen together         all    columns / 16, rows / 2       everything stays
///
/// Each node has a menu: every legal division (division/legal_splits.h), and those that give one of its
/// operands the view that a neighbour has. A small graph is searched whole. A large one by moves, first the
/// nodes that move most: one node takes another division and its neighbours follow along the buffers they
/// share, not at all, through vector operations, or through matmuls too; the move that gains most is kept. A
/// move costs what it touches (co_optimize/trial_plan.h), so the search is linear in layers.
///
/// The result is never worse than that of separate planning under the same model: both are planned to the
/// end, and the cheaper one stays. Needs divided work; places nothing itself.
Result<CoOptimizeReport> co_optimize(Graph& graph, const CoOptimizeOptions& options);

}  // namespace spyre
