#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "spyre/base/text.h"
#include "spyre/graph/device_graph.h"
#include "spyre/lx/planner.h"
#include "spyre/lx/test_programs.h"
#include "spyre/passes/divide/divide_work.h"
#include "spyre/passes/layout/assign_layouts.h"
#include "spyre/passes/layout/cut_loops.h"
#include "spyre/passes/select/eliminate_dead_code.h"
#include "spyre/passes/select/select_ops.h"

/// Graphs as they are when scratchpad planning starts.
namespace spyre::test {

inline const lx::Plan::Entry& entry(const lx::Plan& plan, std::string_view buffer) {
  for (const lx::Plan::Entry& e : plan.entries) {
    if (e.buffer == buffer) return e;
  }
  throw std::out_of_range(std::string(buffer));
}

/// Text to a graph with one operation a node, layouts, and work divided over the cores.
inline DeviceGraph divided(std::string_view text, int64_t cores) {
  Graph captured = parse_graph(text).value();
  eliminate_dead_code(captured);
  DeviceGraph graph = select_ops(std::move(captured)).value();
  for (const Status& status : {assign_layouts(graph), cut_loops(graph)}) {
    if (!status.ok()) throw std::runtime_error(status.error().message);
  }
  if (const auto status = divide_work(graph, cores); !status.ok())
    throw std::runtime_error(status.error().message);
  return graph;
}

/// Scratchpads planned by a planner of their own.
inline Result<lx::Plan> plan(DeviceGraph& graph, const lx::PlannerOptions& options = {}) {
  return lx::Planner(options).plan(graph);
}

}  // namespace spyre::test
