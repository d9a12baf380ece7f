#pragma once

#include <span>
#include <string>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/base/units.h"
#include "spyre/cost/rates.h"
#include "spyre/lx/objective.h"
#include "spyre/lx/operand_traffic.h"

/// What a divided and placed graph costs under the model of cost/: the measure by which plans are compared.
///
/// There are two such measures. By *traffic*, device memory is charged for what the card counts: every core fetches the part it
/// works on, so an operand that eight cores share is fetched eight times. By *time*, one passage serves all who need the
/// same part, as measured kernels show (docs/timing.md), and few cores or full ports hold it up.
namespace spyre {

struct DeviceGraph;

}  // namespace spyre

namespace spyre::lx {

struct CoreView;

struct PlanCost {
  Bytes read, written;  ///< device memory traffic as the card counts it
  Nanos few_cores;      ///< what that takes longer because few cores ask for it
  Bytes passed;         ///< of `read`, what passes the memory: a part that several cores need, once
  Nanos held;           ///< what that takes longer than plain streaming (operand_traffic.h)
  Nanos compute;        ///< matrix arithmetic
  Nanos vector;         ///< vector operations, by the operand of a core that takes longest
  Nanos ring;           ///< shuffles, and partial sums on their way

  Nanos memory(Objective objective) const;
  /// compute and memory overlap in part (0.46: what joint planning uses); the rest follows in turn.
  Nanos total(Objective objective) const;
  /// `214.2 us: 12.1 MiB read, 1.0 MiB written, 160.3 us compute, ...`
  std::string to_text(Objective objective) const;

  PlanCost& operator+=(const PlanCost& other);
  PlanCost& operator-=(const PlanCost& other);
};

/// Arithmetic and partial sums of one operation; no traffic.
PlanCost work_cost(const NormalOp& op, std::span<const DeviceLayout* const> layouts);
/// Device memory traffic of one operand.
PlanCost traffic_cost(const OperandTraffic& moved, bool writes, int64_t cores);
/// A shuffle into this view.
Nanos shuffle_time(const CoreView& from, const CoreView& to);
/// Of an operation that is a shuffle.
Nanos relayout_cost(const NormalOp& op, std::span<const DeviceLayout* const> layouts);

/// A graph with every decision made. Buffers without a place in LX are in device memory.
Result<PlanCost> cost_of(const DeviceGraph& graph);

/// Device memory traffic of such a graph by buffer: what not being in LX costs each of them. Sums to `read`
/// and `written` of its cost.
Result<std::vector<Bytes>> traffic_by_buffer(const DeviceGraph& graph);

}  // namespace spyre::lx
