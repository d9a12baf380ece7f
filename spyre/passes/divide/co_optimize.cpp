#include "spyre/passes/divide/co_optimize.h"

#include <fmt/format.h>

#include <vector>

#include "spyre/base/json.h"
#include "spyre/lx/kernel_time.h"
#include "spyre/passes/divide/co_optimize/division_search.h"

namespace spyre {
namespace {

void divide(DeviceNode& node, const std::vector<Loop>& loops) {
  for (const Loop& decided : loops) {
    for (Loop& loop : node.loops) {
      if (loop.name == decided.name) loop.split = decided.split, loop.step = decided.step;
    }
  }
}

/// A graph once its scratchpads are planned.
struct Outcome {
  lx::PlanCost cost;
  Nanos time;

  /// What the search makes small.
  Nanos measure(lx::Objective objective) const {
    return objective == lx::Objective::kTime ? time : cost.total(objective);
  }
};

Result<Outcome> planned(DeviceGraph graph, lx::Planner& planner) {
  SPYRE_ASSIGN_OR_RETURN(const lx::Plan plan, planner.plan(graph, lx::Effort::kWholeLives));
  Outcome outcome;
  SPYRE_ASSIGN_OR_RETURN(outcome.cost, lx::cost_of(graph));
  SPYRE_ASSIGN_OR_RETURN(outcome.time, lx::kernel_time(graph));
  return outcome;
}

}  // namespace

std::string CoOptimizeReport::to_text() const {
  return fmt::format("separate  {}\njoint     {}\n{} plans looked at{}\n", separate.to_text(objective),
                     joint.to_text(objective), evaluated, exact ? ", all there are" : "");
}

Json CoOptimizeReport::to_json() const {
  const auto cost = [&](const lx::PlanCost& c) -> Json {
    return {{"us", c.total(objective).us()},
            {"hbm_read", c.read.count()},
            {"hbm_written", c.written.count()},
            {"memory_us", c.memory(objective).us()},
            {"compute_us", c.compute.us()},
            {"vector_us", c.vector.us()},
            {"ring_us", c.ring.us()}};
  };
  return {{"separate", cost(separate)}, {"joint", cost(joint)}, {"evaluated", evaluated}, {"exact", exact}};
}

Result<CoOptimizeReport> co_optimize(DeviceGraph& graph, lx::Planner& planner,
                                     const CoOptimizeOptions& options) {
  SPYRE_ASSIGN_OR_RETURN(const Outcome separate, planned(graph, planner));
  Outcome joint = separate;
  SPYRE_ASSIGN_OR_RETURN(const lx::Analysis analysis, lx::Analysis::of(graph, planner.options().moves));
  DeviceGraph best = graph;
  int64_t evaluated = 0;
  bool exact = false;
  // The search adds up what nodes and buffers cost by themselves. Which of its two sums leads to the shorter kernel is seen at
  // the end.
  std::vector<lx::Objective> sums = {lx::Objective::kTraffic};
  if (options.objective == lx::Objective::kTime) sums.push_back(lx::Objective::kTime);
  for (const lx::Objective sum : sums) {
    DivisionSearch search(analysis, sum, options);
    // Sizes that fit together may still find no place together; with less room to count on they do.
    for (const double room : {1.0, 0.85, 0.7}) {
      search.run(static_cast<int64_t>(static_cast<double>(planner.options().capacity.count()) * room));
      DeviceGraph divided = graph;
      for (size_t n = 0; n < divided.nodes.size(); ++n) {
        if (const std::vector<Loop>* loops = search.loops(n)) divide(divided.nodes[n], *loops);
      }
      SPYRE_ASSIGN_OR_RETURN(const Outcome found, planned(divided, planner));
      if (found.measure(options.objective) < joint.measure(options.objective)) {
        best = std::move(divided);
        joint = found;
      }
      if (found.cost.total(sum) <= search.expected() * 1.01) break;
    }
    evaluated += search.evaluated();
    // Of all plans by a sum, only its best is played through: for time that proves nothing of the others.
    exact = search.exact() && options.objective == lx::Objective::kTraffic;
  }
  graph = std::move(best);
  return CoOptimizeReport{.objective = options.objective,
                          .separate = separate.cost,
                          .joint = joint.cost,
                          .separate_time = separate.time,
                          .joint_time = joint.time,
                          .evaluated = evaluated,
                          .exact = exact};
}

}  // namespace spyre
