#pragma once

#include <optional>
#include <vector>

#include "spyre/device/exec/bound_op.h"
#include "spyre/device/exec/footprint.h"
#include "spyre/device/exec/memory_shape.h"

/// What the sources behind checker.h share.
namespace spyre::exec {

/// From the first stick to the last.
StickRun hull_of(const Footprint& sticks);
StickRun join(const StickRun& a, const StickRun& b);
/// From the first stick that any core touches to the last; nothing if none does.
std::optional<StickRun> hull_of(const std::vector<Footprint>& cores);

/// Part of a buffer, written or read as such: inside it, and stepping as it does.
bool is_slice_of(const MemoryShape& view, const StickRun& view_hull, const MemoryShape& buffer,
                 const StickRun& buffer_hull);

/// Tensors whose steps are those of the iteration space: no window, no index.
bool is_plain(const Tensor& tensor);

/// Ops that give elements another place, and no other value.
inline bool moves_bits(const BoundOp& bound) {
  const OpFamily family = bound.op->info->family;
  return family == OpFamily::kCopy || family == OpFamily::kShuffle;
}

inline int core_count(const BoundOp& bound) {
  return static_cast<int>(bound.op->cores.size());
}

}  // namespace spyre::exec
