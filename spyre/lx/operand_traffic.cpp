#include "spyre/lx/operand_traffic.h"

#include <algorithm>

#include "spyre/cost/memory.h"
#include "spyre/graph/core_map.h"
#include "spyre/lx/core_view.h"
#include "spyre/lx/matmul_roles.h"

namespace spyre::lx {
namespace {

// Into how many parts the operand is cut, and how many cores move each: those that differ in loops that it does not have. Rows
// picked by an index are each core's own, and of cores that share a sum one writes.
struct Parts {
  int64_t count = 1, readers = 1;
};
Parts parts_of(const NormalOp& op, size_t operand) {
  const DeviceAccess& access = op.access.operands[operand];
  const bool picked = std::any_of(access.dims.begin(), access.dims.end(),
                                  [](const AccessDim& dim) { return !dim.indirect.empty(); });
  Parts parts;
  for (size_t i = 0; i < op.access.loops.size(); ++i) {
    const bool uses = picked || access.uses(static_cast<int>(i));
    (uses ? parts.count : parts.readers) *= op.access.loops[i].split;
  }
  if (operand + 1 == op.access.operands.size()) parts.readers = 1;
  return parts;
}

// By how much so many bytes take longer than at the full rate, when the memory serves them at `rate` and all ports together
// take `ports`.
Nanos held_up(Bytes passed, double rate, double ports) {
  const double bytes = static_cast<double>(passed.count());
  return {bytes / std::min(rate, ports) - bytes / fitted_rates().hbm_one_way};
}

}  // namespace

OperandTraffic operand_traffic(const NormalOp& op, size_t operand,
                               std::span<const DeviceLayout* const> layouts) {
  const Rates& rates = fitted_rates();
  const bool writes = operand + 1 == op.access.operands.size();
  const Parts parts = parts_of(op, operand);
  const Bytes counted = kStickBytes * sticks_moved(op, operand, layouts);
  const Bytes passed(counted.count() / parts.readers);
  double rate = rates.hbm_one_way, port = core_rate(static_cast<int>(cores_used(op.access.loops)), rates);
  if (parts.readers > 1) port = rates.slice_shared;
  if (op.op.is_matmul()) {
    const MatmulRoles roles = roles_of(op);
    const double rows = static_cast<double>(roles.shape.m) / roles.split.m;
    if (parts.readers > 1) port = shared_slice_rate(rows, roles.split, rates);
    if (streams_weight(roles.shape)) {
      rate = weight_rate(rows, roles.split, rates);
    } else if (!writes) {
      rate /= 1 + operand_reread(roles.shape, roles.split);
    }
  }
  return {counted, passed, held_up(passed, rate, port * static_cast<double>(parts.count))};
}

OperandTraffic copy_traffic(Bytes whole, int64_t cores) {
  const Rates& rates = fitted_rates();
  return {whole, whole,
          held_up(whole, rates.hbm_one_way,
                  core_rate(static_cast<int>(cores), rates) * static_cast<double>(cores))};
}

}  // namespace spyre::lx
