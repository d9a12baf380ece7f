#include "spyre/lx/kernel_time.h"

#include <algorithm>
#include <set>
#include <vector>

#include "spyre/cost/memory.h"
#include "spyre/lx/graph_access.h"
#include "spyre/lx/plan_cost.h"

namespace spyre::lx {
namespace {

/// What one operation asks of the card.
struct Asked {
  Traffic passed;
  Nanos held_loads, held_stores;
  Nanos cores;
  std::set<size_t> waits_for;  ///< operations that store what it loads
};

Result<std::vector<Asked>> asked_by(const DeviceGraph& graph) {
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  std::vector<Asked> asked(access.ops.size());
  for (size_t n = 0; n < asked.size(); ++n) {
    const NormalOp& op = access.ops[n];
    const PlanCost work = work_cost(op, access.layouts[n]);
    asked[n].cores = work.compute + work.vector + work.ring;
    for (size_t i = 0; i < op.access.operands.size(); ++i) {
      const auto buffer = static_cast<size_t>(operand_buffer(op, i));
      if (graph.buffers[buffer].in_lx()) continue;
      const OperandTraffic moved = operand_traffic(op, i, access.layouts[n]);
      if (i + 1 == op.access.operands.size()) {
        asked[n].passed.written += moved.passed;
        asked[n].held_stores = asked[n].held_stores + moved.held;
        continue;
      }
      asked[n].passed.read += moved.passed;
      asked[n].held_loads = asked[n].held_loads + moved.held;
      for (const BufferTouch& touch : access.touches[buffer]) {
        if (touch.writes && touch.node < n) asked[n].waits_for.insert(touch.node);
      }
    }
    if (op.op.op == OpId::shuffle) asked[n].cores = relayout_cost(op, access.layouts[n]);
  }
  return asked;
}

/// The direction that moves less in all turns the bus around for each of its bytes.
class Prices {
 public:
  explicit Prices(const std::vector<Asked>& asked) {
    Traffic all;
    for (const Asked& a : asked) all.read += a.passed.read, all.written += a.passed.written;
    (all.read < all.written ? load_ : store_) += fitted_rates().turnaround;
  }
  double load(const Asked& a) const {
    return load_ * static_cast<double>(a.passed.read.count()) + a.held_loads.ns;
  }
  double store(const Asked& a) const {
    return store_ * static_cast<double>(a.passed.written.count()) + a.held_stores.ns;
  }

 private:
  double load_ = 1 / fitted_rates().hbm_one_way, store_ = 1 / fitted_rates().hbm_one_way;
};

}  // namespace

Result<Nanos> kernel_time(const DeviceGraph& graph) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<Asked> asked, asked_by(graph));
  const Prices prices(asked);
  std::vector<double> stored(asked.size());
  double memory = 0, begun = 0,
         computed = 0;  // memory: free from then on; the other two of the operation before
  const auto store = [&](size_t n) {
    memory = std::max(memory, begun) + prices.store(asked[n]);
    stored[n] = std::max(memory, computed);
  };
  for (size_t n = 0; n < asked.size(); ++n) {
    // Loads of this one and stores of the one before are asked for at the same time. What waits goes last.
    const bool waits = n > 0 && asked[n].waits_for.contains(n - 1);
    if (waits) store(n - 1);
    double from = begun;
    for (const size_t writer : asked[n].waits_for) from = std::max(from, stored[writer]);
    double loaded = from;
    if (const double load = prices.load(asked[n]); load > 0) loaded = memory = std::max(memory, from) + load;
    if (n > 0 && !waits) store(n - 1);
    // Buffers are double: the store of the one before the last must be done.
    begun = std::max(computed, n < 2 ? 0 : stored[n - 2]);
    computed = std::max(begun + asked[n].cores.ns, loaded);
  }
  if (!asked.empty()) store(asked.size() - 1);
  return Nanos{asked.empty() ? 0 : std::max(computed, stored.back())};
}

}  // namespace spyre::lx
