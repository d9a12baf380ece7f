#include "spyre/graph/core_map.h"

namespace spyre {

std::vector<int> iteration_order(const NormalOp& op) {
  const std::vector<Loop>& loops = op.access.loops;
  std::vector<int> kept, reduced, order;
  for (size_t i = 0; i < loops.size(); ++i)
    (loops[i].reduced ? reduced : kept).push_back(static_cast<int>(i));
  if (op.op.is_matmul()) {
    const int n = op.output().lane;
    std::vector<int> batch, m;
    for (const int loop : kept) {
      if (loop == n) continue;
      (op.input(0).uses(loop) && !op.input(1).uses(loop) ? m : batch).push_back(loop);
    }
    // Of several loops that only the left operand has, the innermost is m.
    batch.insert(batch.end(), m.begin(), m.empty() ? m.end() : m.end() - 1);
    order = batch;
    if (!m.empty()) order.push_back(m.back());
    order.push_back(n);
  } else {
    order = kept;
  }
  order.insert(order.end(), reduced.begin(), reduced.end());
  return order;
}

std::vector<int64_t> default_core_steps(std::span<const int64_t> splits, bool last_first) {
  std::vector<int64_t> steps(splits.size(), 1);
  if (splits.empty()) return steps;
  const size_t last = splits.size() - 1;
  int64_t faster_cores = last_first ? splits[last] : 1;
  for (size_t i = 0; i < splits.size(); ++i) {
    if (last_first && i == last) continue;
    steps[i] = faster_cores;
    faster_cores *= splits[i];
  }
  return steps;
}

std::vector<int64_t> core_steps(const NormalOp& op) {
  const std::vector<Loop>& loops = op.access.loops;
  const std::vector<int> order = iteration_order(op);
  std::vector<int64_t> splits;
  for (const int loop : order) splits.push_back(loops[static_cast<size_t>(loop)].split);
  const std::vector<int64_t> ordered = default_core_steps(splits, op.op.is_matmul());
  std::vector<int64_t> steps(loops.size(), 1);
  for (size_t i = 0; i < order.size(); ++i) {
    const Loop& loop = loops[static_cast<size_t>(order[i])];
    steps[static_cast<size_t>(order[i])] = loop.step > 0 ? loop.step : ordered[i];
  }
  return steps;
}

int64_t cores_used(const std::vector<Loop>& loops) {
  int64_t cores = 1;
  for (const Loop& loop : loops) cores *= loop.split;
  return cores;
}

int64_t cores_after(const std::vector<Loop>& loops) {
  int64_t cores = 1;
  for (const Loop& loop : loops) cores *= loop.to_split;
  return cores;
}

ShuffleCores shuffle_cores(const DeviceOp& op) {
  ShuffleCores cores;
  for (const auto& [name, value] : op.constants) {
    if (name == "from_cores") cores.from = static_cast<int64_t>(value);
    if (name == "to_cores") cores.to = static_cast<int64_t>(value);
  }
  return cores;
}

}  // namespace spyre
