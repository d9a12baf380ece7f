#include "spyre/passes/bundle/reorder_nodes.h"

#include "spyre/base/json.h"
#include "spyre/lx/kernel_time.h"
#include "spyre/lx/plan_cost.h"
#include "spyre/passes/bundle/reorder/order_search.h"

namespace spyre {
namespace {

DeviceGraph in_order(const DeviceGraph& graph, const Order& order) {
  DeviceGraph ordered = graph;
  for (size_t i = 0; i < order.size(); ++i) ordered.nodes[i] = graph.nodes[order[i]];
  return ordered;
}

struct Planned {
  Bytes traffic;
  Nanos time;  ///< where that is the objective
  bool all_found_room = false;

  bool better_than(const Planned& other, lx::Objective objective) const {
    return objective == lx::Objective::kTime ? time < other.time : traffic < other.traffic;
  }
};

Result<Planned> planned(DeviceGraph graph, lx::Planner& planner, lx::Effort effort, lx::Objective objective) {
  SPYRE_ASSIGN_OR_RETURN(const lx::Plan plan, planner.plan(graph, effort));
  SPYRE_ASSIGN_OR_RETURN(const lx::PlanCost cost, lx::cost_of(graph));
  Planned found{cost.read + cost.written, {}, plan.saved() == plan.at_stake()};
  if (objective == lx::Objective::kTime) {
    SPYRE_ASSIGN_OR_RETURN(found.time, lx::kernel_time(graph));
  }
  return found;
}

}  // namespace

Json ReorderReport::to_json() const {
  return {{"before", before.count()}, {"after", after.count()}, {"evaluated", evaluated}, {"moved", moved}};
}

Result<ReorderReport> reorder_nodes(DeviceGraph& graph, lx::Planner& planner, const ReorderOptions& options) {
  SPYRE_ASSIGN_OR_RETURN(Planned given, planned(graph, planner, lx::Effort::kWholeLives, options.objective));
  ReorderReport report{.before = given.traffic, .after = given.traffic};
  if (given.all_found_room) return report;
  SPYRE_ASSIGN_OR_RETURN(const lx::Analysis analysis, lx::Analysis::of(graph, planner.options().moves));
  lx::OrderEstimate estimate(analysis, planner.options().capacity);
  const Dependences dependences = dependences_of(graph);
  OrderSearch search(dependences, analysis.access(), estimate, options.budget);
  const std::optional<Order> order = search.run();
  report.evaluated = search.evaluated();
  if (!order) return report;
  SPYRE_CHECK(keeps(dependences, *order), "an order keeps what nodes wait for");
  DeviceGraph ordered = in_order(graph, *order);
  SPYRE_ASSIGN_OR_RETURN(Planned other,
                         planned(ordered, planner, lx::Effort::kWholeLives, options.objective));
  if (!other.better_than(given, options.objective)) return report;
  // Parts of lives may do in the order of the program what another order does for whole ones.
  SPYRE_ASSIGN_OR_RETURN(given, planned(graph, planner, lx::Effort::kFull, options.objective));
  SPYRE_ASSIGN_OR_RETURN(other, planned(ordered, planner, lx::Effort::kFull, options.objective));
  report.before = given.traffic;
  if (!other.better_than(given, options.objective)) return report;
  report.after = other.traffic;
  for (size_t i = 0; i < order->size(); ++i) report.moved += (*order)[i] != i;
  graph = std::move(ordered);
  return report;
}

}  // namespace spyre
