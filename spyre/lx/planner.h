#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "spyre/base/result.h"
#include "spyre/base/settings.h"
#include "spyre/base/units.h"
#include "spyre/graph/device_graph.h"
#include "spyre/lx/moves.h"
#include "spyre/lx/plan.h"
#include "spyre/solve/solver.h"

namespace spyre::lx {

/// Bytes of every core's LX that a plan may use, when the back end keeps a fraction of it for itself
/// (DXP_LX_FRAC_AVAIL). 64 KiB for programs and debugging are set aside before; the rest is rounded up to
/// whole sticks:
///
///     usable_lx(0) = 2031616     usable_lx(0.2) = 1625344     usable_lx(1) = 0
///
/// Refused: a fraction outside [0, 1].
Result<Bytes> usable_lx(double back_end_fraction);

struct PlannerOptions {
  Bytes capacity = usable_lx(setting_default<double>("DXP_LX_FRAC_AVAIL")).value();
  std::string solver = setting_default<std::string>("LAYOUT_SOLVER");
  MoveSet moves = MoveSet::all();
};

enum class Effort : uint8_t {
  kWholeLives,  ///< every buffer for its whole life or not at all: enough to tell which of two graphs is better
  kFull,
};

/// Plans scratchpads: the graphs of one compilation, one after the other.
///
/// Passes on their way to a plan pose the same problems again: what the search for divisions ends with is what planning
/// begins with. A planner therefore remembers the last few answers of its solver. Every graph gets the plan that a new
/// planner would give it.
class Planner {
 public:
  explicit Planner(PlannerOptions options = {}) : options_(std::move(options)) {}
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  const PlannerOptions& options() const { return options_; }

  /// Decides what stays in LX, and writes it into the graph: places, copies, and who reads which copy
  /// (place_writer.h). Two problems are posed (allocation_problem.h): first every buffer for its whole life; where that
  /// leaves one outside for lack of room, also for segments of it, so that the solver may evict it in an idle gap and reload
  /// it later. The answer that saves more stays, the first when they save the same.
  ///
  /// Needs divided work. Changes no result, bit for bit. `progress` is called whenever the solver has answered.
  Result<Plan> plan(DeviceGraph& graph, Effort effort = Effort::kFull,
                    const std::function<void()>& progress = {});

 private:
  Result<solve::Solution> ask(const solve::Problem& problem, const std::function<void()>& progress);

  const PlannerOptions options_;
  std::deque<std::pair<solve::Problem, solve::Solution>> known_;  // the latest few
};

}  // namespace spyre::lx
