#pragma once

#include <string>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"
#include "spyre/lx/objective.h"
#include "spyre/lx/planner.h"

namespace spyre {

struct ReorderOptions {
  /// Units of work for looking at orders (a buffer or a step each). Work, not time: the same graph gives the
  /// same order everywhere.
  int64_t budget = 20'000'000;
  lx::Objective objective = lx::Objective::kTraffic;
};

/// What the search found; device memory traffic of the planned graph.
struct ReorderReport {
  Bytes before;           ///< in the order it came
  Bytes after;            ///< in the order it has now
  int64_t evaluated = 0;  ///< orders looked at; 0: everything found room in the order it came
  int64_t moved = 0;      ///< nodes that run at another place than before

  Json to_json() const;
};

/// Lets nodes run in another order when more fits into LX then.
///
///     a = exp x;  b = neg x;  c = a + 1;  d = b + 1        room for two of four
///       a and b wait together: b leaves LX
///     a = exp x;  c = a + 1;  b = neg x;  d = b + 1
///       a is gone when b is made
///
/// Only when the plan in program order leaves something outside for lack of room. Orders that keep every
/// dependence (reorder/dependences.h) are searched (reorder/order_search.h) under an estimate. The best is planned to
/// the end, and kept only if its plan moves strictly fewer bytes of device memory or, where time is the objective, is done
/// earlier.
///
/// Needs divided work; places nothing itself. Changes no result, bit for bit.
Result<ReorderReport> reorder_nodes(DeviceGraph& graph, lx::Planner& planner,
                                    const ReorderOptions& options = {});

}  // namespace spyre
