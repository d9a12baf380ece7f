#include "spyre/lx/plan_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/base/text.h"
#include "spyre/cost/matmul.h"
#include "spyre/cost/memory.h"
#include "spyre/cost/ring.h"
#include "spyre/graph/core_map.h"
#include "spyre/lx/core_view.h"
#include "spyre/lx/graph_access.h"
#include "spyre/lx/matmul_roles.h"

namespace spyre::lx {
namespace {

constexpr double kOverlap = 0.46;     // docs/reference/timing.md#bundles: the joint planner's fraction
constexpr int64_t kPartialBytes = 4;  // a partial sum travels as fp32

Nanos matmul_compute(const NormalOp& op) {
  const MatmulRoles roles = roles_of(op);
  const MatmulTime time = matmul_time(roles.shape, roles.split, fitted_rates());
  return time.compute * one_corelet(roles.split) + time.split_penalty;
}

// Cores that share a sum pass partial results along a chain on the ring, each its own part of the output.
Nanos sums_time(const NormalOp& op) {
  int64_t shared = 1, elements = 1;
  for (size_t i = 0; i < op.access.loops.size(); ++i) {
    const Loop& loop = op.access.loops[i];
    if (loop.reduced) shared *= loop.split;
    if (op.output().uses(static_cast<int>(i))) elements *= (loop.extent + loop.split - 1) / loop.split;
  }
  return ring_chain_time(Bytes(elements * kPartialBytes), static_cast<int>(shared), 1, fitted_rates());
}

}  // namespace

Nanos PlanCost::memory(Objective objective) const {
  if (objective == Objective::kTraffic) return streaming_time({read, written}, fitted_rates()) + few_cores;
  return streaming_time({passed, written}, fitted_rates()) + held;
}

Nanos PlanCost::total(Objective objective) const {
  const Nanos from_memory = memory(objective);
  return compute + from_memory - std::min(compute, from_memory) * kOverlap + vector + ring;
}

std::string PlanCost::to_text(Objective objective) const {
  return fmt::format(
      "{:.1f} us: {} read, {} written, memory {:.1f} us, compute {:.1f} us, vector {:.1f} us, ring {:.1f} us",
      total(objective).us(), human_bytes(read), human_bytes(written), memory(objective).us(), compute.us(),
      vector.us(), ring.us());
}

PlanCost& PlanCost::operator+=(const PlanCost& other) {
  read += other.read;
  written += other.written;
  few_cores = few_cores + other.few_cores;
  passed += other.passed;
  held = held + other.held;
  compute = compute + other.compute;
  vector = vector + other.vector;
  ring = ring + other.ring;
  return *this;
}

PlanCost& PlanCost::operator-=(const PlanCost& other) {
  read -= other.read;
  written -= other.written;
  few_cores = few_cores - other.few_cores;
  passed -= other.passed;
  held = held - other.held;
  compute = compute - other.compute;
  vector = vector - other.vector;
  ring = ring - other.ring;
  return *this;
}

PlanCost work_cost(const NormalOp& op, std::span<const DeviceLayout* const> layouts) {
  PlanCost cost;
  if (op.op.op == OpId::shuffle) return cost;
  if (op.op.is_matmul()) {
    cost.compute = matmul_compute(op);
  } else {
    int64_t most = 0;
    for (size_t i = 0; i < op.access.operands.size(); ++i)
      most = std::max(most, sticks_moved(op, i, layouts));
    const double per_core =
        static_cast<double>((kStickBytes * most).count()) / static_cast<double>(cores_used(op.access.loops));
    cost.vector = {per_core / fitted_rates().lx};
  }
  cost.ring = sums_time(op);
  return cost;
}

PlanCost traffic_cost(const OperandTraffic& moved, bool writes, int64_t cores) {
  PlanCost cost;
  (writes ? cost.written : cost.read) = moved.counted;
  if (!writes) cost.passed = moved.passed;
  cost.held = moved.held;
  const double share = core_share(static_cast<int>(cores), fitted_rates());
  cost.few_cores = {static_cast<double>(moved.counted.count()) / fitted_rates().hbm_one_way *
                    (1 / share - 1)};
  return cost;
}

Nanos shuffle_time(const CoreView& from, const CoreView& to) {
  const Bytes held = kStickBytes * from.sticks(), received = kStickBytes * to.sticks();
  const auto piece = [](const CoreView& view) {
    return view.runs.empty() ? kStickBytes
                             : kStickBytes * (view.runs.back().stride == 1 ? view.runs.back().count : 1);
  };
  const auto fan = static_cast<int>(std::max(from.parts(), to.parts()));
  const Nanos moved = relayout_time(held * from.cores(), static_cast<int>(from.cores()),
                                    std::min(piece(from), piece(to)), fan, fitted_rates());
  // A core cannot take in more than its link brings.
  return std::max(moved, Nanos{static_cast<double>(received.count()) / fitted_rates().ring});
}

Nanos relayout_cost(const NormalOp& op, std::span<const DeviceLayout* const> layouts) {
  const ViewOrReason from = core_view(op, 0, layouts), to = core_view(op, 1, layouts);
  return shuffle_time(std::get<CoreView>(from), std::get<CoreView>(to));
}

Result<PlanCost> cost_of(const DeviceGraph& graph) {
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  PlanCost cost;
  for (size_t n = 0; n < access.ops.size(); ++n) {
    const NormalOp& op = access.ops[n];
    cost += work_cost(op, access.layouts[n]);
    if (op.op.op == OpId::shuffle) {
      cost.ring = cost.ring + relayout_cost(op, access.layouts[n]);
      continue;
    }
    for (size_t i = 0; i < op.access.operands.size(); ++i) {
      if (graph.buffers[static_cast<size_t>(operand_buffer(op, i))].in_lx()) continue;
      cost += traffic_cost(operand_traffic(op, i, access.layouts[n]), i + 1 == op.access.operands.size(),
                           cores_used(op.access.loops));
    }
  }
  return cost;
}

Result<std::vector<Bytes>> traffic_by_buffer(const DeviceGraph& graph) {
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  std::vector<Bytes> traffic(graph.buffers.size());
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    if (graph.buffers[id].in_lx()) continue;
    for (const BufferTouch& touch : access.touches[id])
      traffic[id] +=
          kStickBytes * sticks_moved(access.ops[touch.node], touch.operand, access.layouts[touch.node]);
  }
  return traffic;
}

}  // namespace spyre::lx
