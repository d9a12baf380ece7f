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

namespace spyre::lx {
namespace {

constexpr double kOverlap = 0.46;     // docs/reference/timing.md#bundles: the joint planner's fraction
constexpr int64_t kPartialBytes = 4;  // a partial sum travels as fp32

struct MatmulRoles {
  MatmulShape shape;
  MatmulSplit split;
};

// Loops by what they do in a matmul: summed (k), along the result's stick (n), in both operands (batch), or rows (m). A
// weight that no batch loop walks is shared by the whole batch, which is then as good as more rows.
MatmulRoles roles_of(const NormalOp& op) {
  MatmulRoles roles;
  const std::vector<Loop>& loops = op.access.loops;
  roles.shape.shared_weight = true;
  const int n = op.output().lane;
  for (size_t i = 0; i < loops.size(); ++i) {
    const int loop = static_cast<int>(i);
    const auto split = static_cast<int>(loops[i].split);
    if (loops[i].reduced) {
      roles.shape.k *= loops[i].extent, roles.split.k *= split;
    } else if (loop == n) {
      roles.shape.n *= loops[i].extent, roles.split.n *= split;
    } else if (op.input(1).uses(loop)) {
      roles.shape.batch *= loops[i].extent, roles.split.b *= split;
      roles.shape.shared_weight = false;
    } else {
      roles.shape.m *= loops[i].extent, roles.split.m *= split;
    }
  }
  return roles;
}

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

Nanos PlanCost::memory() const {
  return streaming_time({read, written}, fitted_rates()) + few_cores;
}

Nanos PlanCost::total() const {
  return compute + memory() - std::min(compute, memory()) * kOverlap + vector + ring;
}

std::string PlanCost::to_text() const {
  return fmt::format(
      "{:.1f} us: {} read, {} written, memory {:.1f} us, compute {:.1f} us, vector {:.1f} us, ring {:.1f} us",
      total().us(), human_bytes(read), human_bytes(written), memory().us(), compute.us(), vector.us(),
      ring.us());
}

PlanCost& PlanCost::operator+=(const PlanCost& other) {
  read += other.read;
  written += other.written;
  few_cores = few_cores + other.few_cores;
  compute = compute + other.compute;
  vector = vector + other.vector;
  ring = ring + other.ring;
  return *this;
}

PlanCost& PlanCost::operator-=(const PlanCost& other) {
  read -= other.read;
  written -= other.written;
  few_cores = few_cores - other.few_cores;
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

PlanCost traffic_cost(Bytes moved, bool writes, int64_t cores) {
  PlanCost cost;
  (writes ? cost.written : cost.read) = moved;
  const double share = core_share(static_cast<int>(cores), fitted_rates());
  cost.few_cores = {static_cast<double>(moved.count()) / fitted_rates().hbm_one_way * (1 / share - 1)};
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

Result<PlanCost> cost_of(const DeviceGraph& graph) {
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  PlanCost cost;
  for (size_t n = 0; n < access.ops.size(); ++n) {
    const NormalOp& op = access.ops[n];
    cost += work_cost(op, access.layouts[n]);
    if (op.op.op == OpId::shuffle) {
      const ViewOrReason from = core_view(op, 0, access.layouts[n]), to = core_view(op, 1, access.layouts[n]);
      cost.ring = cost.ring + shuffle_time(std::get<CoreView>(from), std::get<CoreView>(to));
      continue;
    }
    for (size_t i = 0; i < op.access.operands.size(); ++i) {
      const auto& place = graph.buffers[static_cast<size_t>(operand_buffer(op, i))].place;
      if (place && place->kind == BufferPlace::Kind::kLx) continue;
      cost += traffic_cost(kStickBytes * sticks_moved(op, i, access.layouts[n]),
                           i + 1 == op.access.operands.size(), cores_used(op.access.loops));
    }
  }
  return cost;
}

Result<std::vector<Bytes>> traffic_by_buffer(const DeviceGraph& graph) {
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  std::vector<Bytes> traffic(graph.buffers.size());
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    const auto& place = graph.buffers[id].place;
    if (place && place->kind == BufferPlace::Kind::kLx) continue;
    for (const BufferTouch& touch : access.touches[id])
      traffic[id] +=
          kStickBytes * sticks_moved(access.ops[touch.node], touch.operand, access.layouts[touch.node]);
  }
  return traffic;
}

}  // namespace spyre::lx
