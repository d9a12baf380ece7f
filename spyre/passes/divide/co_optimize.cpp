#include "spyre/passes/divide/co_optimize.h"

#include <fmt/format.h>

#include "spyre/base/json.h"
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

// What a graph costs once its scratchpads are planned.
Result<lx::PlanCost> planned_cost(DeviceGraph graph, lx::Planner& planner) {
  SPYRE_ASSIGN_OR_RETURN(const lx::Plan plan, planner.plan(graph, lx::Effort::kWholeLives));
  return lx::cost_of(graph);
}

}  // namespace

std::string CoOptimizeReport::to_text() const {
  return fmt::format("separate  {}\njoint     {}\n{} plans looked at{}\n", separate.to_text(),
                     joint.to_text(), evaluated, exact ? ", all there are" : "");
}

Json CoOptimizeReport::to_json() const {
  const auto cost = [](const lx::PlanCost& c) -> Json {
    return {
        {"us", c.total().us()},         {"hbm_read", c.read.count()},   {"hbm_written", c.written.count()},
        {"memory_us", c.memory().us()}, {"compute_us", c.compute.us()}, {"vector_us", c.vector.us()},
        {"ring_us", c.ring.us()}};
  };
  return {{"separate", cost(separate)}, {"joint", cost(joint)}, {"evaluated", evaluated}, {"exact", exact}};
}

Result<CoOptimizeReport> co_optimize(DeviceGraph& graph, lx::Planner& planner,
                                     const CoOptimizeOptions& options) {
  CoOptimizeReport report;
  SPYRE_ASSIGN_OR_RETURN(report.separate, planned_cost(graph, planner));
  report.joint = report.separate;
  SPYRE_ASSIGN_OR_RETURN(const lx::Analysis analysis, lx::Analysis::of(graph, planner.options().moves));
  // Sizes that fit together may still find no place together; with less room to count on they do.
  DeviceGraph best = graph;
  DivisionSearch search(analysis, options);
  for (const double room : {1.0, 0.85, 0.7}) {
    search.run(static_cast<int64_t>(static_cast<double>(planner.options().capacity.count()) * room));
    DeviceGraph divided = graph;
    for (size_t n = 0; n < divided.nodes.size(); ++n) {
      if (const std::vector<Loop>* loops = search.loops(n)) divide(divided.nodes[n], *loops);
    }
    SPYRE_ASSIGN_OR_RETURN(const lx::PlanCost joint, planned_cost(divided, planner));
    if (joint.total() < report.joint.total()) {
      best = std::move(divided);
      report.joint = joint;
    }
    if (joint.total() <= search.expected() * 1.01) break;
  }
  report.evaluated = search.evaluated();
  report.exact = search.exact();
  graph = std::move(best);
  return report;
}

}  // namespace spyre
