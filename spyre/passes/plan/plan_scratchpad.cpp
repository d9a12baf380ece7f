#include "spyre/passes/plan/plan_scratchpad.h"

namespace spyre {

Result<lx::Plan> plan_scratchpad(DeviceGraph& graph, lx::Planner& planner,
                                 const std::function<void()>& progress) {
  return planner.plan(graph, lx::Effort::kFull, progress);
}

}  // namespace spyre
