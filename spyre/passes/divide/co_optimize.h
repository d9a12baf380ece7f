#pragma once

#include <string>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"
#include "spyre/lx/plan_cost.h"
#include "spyre/lx/planner.h"
#include "spyre/passes/divide/co_optimize/options.h"

namespace spyre {

/// What the search found, under the model of lx/plan_cost.h.
struct CoOptimizeReport {
  lx::Objective objective = lx::Objective::kTraffic;
  lx::PlanCost separate;            ///< divisions first, then scratchpads
  lx::PlanCost joint;               ///< what is in the graph now
  Nanos separate_time, joint_time;  ///< of the kernel (lx/kernel_time.h)
  int64_t evaluated = 0;            ///< plans looked at
  bool exact = false;               ///< all of them: no other choice of legal divisions is better

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
/// operands the view that a neighbour has. A small graph is searched whole, a large one by changes around one node
/// after the other (co_optimize/division_search.h). A change costs what it touches (lx/trial_plan.h), so the search is
/// linear in layers.
///
/// The result is never worse than that of separate planning under the same model: both are planned to the
/// end, and the cheaper one stays. Needs divided work; places nothing itself.
Result<CoOptimizeReport> co_optimize(DeviceGraph& graph, lx::Planner& planner,
                                     const CoOptimizeOptions& options = {});

}  // namespace spyre
