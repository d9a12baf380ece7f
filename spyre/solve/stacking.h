#pragma once

#include <vector>

#include "spyre/solve/problem.h"

namespace spyre::solve {

/// Turns an order into a placement: buffers are dropped one after the other, each onto the highest top of the
/// earlier ones it shares a step with.
///
///     order A, B, C        +---+
///                          | B |---+      C rests on A (they share a step), not on B.
///                       +--+---+ C |
///                       |   A   ---+
///
/// A buffer may drop onto an in-place partner's base instead when nothing else is in the way. One that would
/// stick out of the capacity, or whose alternative lies there, stays off chip and is in nobody's way. Fixed
/// buffers lie there from the start.
class Stacking {
 public:
  explicit Stacking(const Problem& problem);

  /// The buffers an order must hold: neither ineligible nor fixed.
  const std::vector<BufferIndex>& movable() const { return movable_; }

  /// Stacks in this order; returns the bytes saved.
  Bytes stack(const std::vector<BufferIndex>& order);

  /// The result of the last call.
  const Placement& placement() const { return placement_; }
  /// Units of work of one call.
  int64_t work() const { return work_; }

 private:
  std::optional<Bytes> find_offset(BufferIndex id) const;
  std::optional<Bytes> partner_base(BufferIndex id) const;
  bool clear_of_fixed(BufferIndex id, Bytes& offset) const;

  const Problem& problem_;
  std::vector<BufferIndex> movable_;
  std::vector<std::vector<BufferIndex>> neighbours_;  ///< movable buffers that share a step
  std::vector<std::vector<BufferIndex>> fixed_;       ///< fixed ones that do, by offset
  std::vector<std::vector<BufferIndex>> partners_;    ///< in-place parents and children
  Placement placement_;
  int64_t work_ = 0;
};

}  // namespace spyre::solve
