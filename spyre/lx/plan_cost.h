#pragma once

#include <span>
#include <string>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/base/units.h"
#include "spyre/cost/rates.h"

/// What a divided and placed graph costs under the model of cost/: the measure by which plans are compared.
///
/// Device memory traffic is counted as the card counts it: every core fetches the part it works on, so an
/// operand that eight cores share is fetched eight times. That is what an artifact asks for; a card that
/// broadcasts is faster.
namespace spyre {

struct DeviceLayout;
struct DeviceGraph;
struct NormalOp;

}  // namespace spyre

namespace spyre::lx {

struct CoreView;

struct PlanCost {
  Bytes read, written;  ///< device memory traffic
  Nanos few_cores;      ///< what it takes longer because few cores ask for it
  Nanos compute;        ///< matrix arithmetic
  Nanos vector;         ///< vector operations, by the operand of a core that takes longest
  Nanos ring;           ///< shuffles, and partial sums on their way

  Nanos memory() const;
  /// compute and memory overlap in part (0.46: what joint planning uses); the rest follows in turn.
  Nanos total() const;
  /// `214.2 us: 12.1 MiB read, 1.0 MiB written, 160.3 us compute, ...`
  std::string to_text() const;

  PlanCost& operator+=(const PlanCost& other);
  PlanCost& operator-=(const PlanCost& other);
};

/// Arithmetic and partial sums of one operation; no traffic.
PlanCost work_cost(const NormalOp& op, std::span<const DeviceLayout* const> layouts);
/// Device memory traffic of one operand.
PlanCost traffic_cost(Bytes moved, bool writes, int64_t cores);
/// A shuffle into this view.
Nanos shuffle_time(const CoreView& from, const CoreView& to);

/// A graph with every decision made. Buffers without a place in LX are in device memory.
Result<PlanCost> cost_of(const DeviceGraph& graph);

/// Device memory traffic of such a graph by buffer: what not being in LX costs each of them. Sums to `read`
/// and `written` of its cost.
Result<std::vector<Bytes>> traffic_by_buffer(const DeviceGraph& graph);

}  // namespace spyre::lx
