#pragma once

#include <vector>

#include "spyre/device/exec/prepared_op.h"

namespace spyre::exec {

/// Ops in a row that every core can run on its own: what passes between them lies in its scratchpad.
///
///     max     x (HBM) -> m (LX)            core 0: max sub exp sum div
///     sub     x, m    -> d (LX)            core 1: max sub exp sum div
///     exp     d       -> d (LX)            ...
///     sum     d       -> s (LX)
///     div     d, s    -> y (HBM)
///
/// Run core by core instead of op by op, a scratchpad stays in the host's cache from the first op to the
/// last. Nothing else changes: an op joins only if no byte of HBM that one op of the chain writes is touched
/// by another.
class CoreChain {
 public:
  /// Whether the op touches no HBM that the chain writes, and writes none that the chain touches.
  bool admits(const PreparedOp& op, const Places& places) const;
  /// Puts an op off until `run`. Needs `admits`, a core-local op that overwrites no input, and the op to live
  /// until then.
  void add(const PreparedOp& op, const Places& places);
  /// Runs what was put off, and forgets it.
  void run();

 private:
  struct Link {
    const PreparedOp* op;
    Places places;
  };

  void run_core_by_core() const;

  std::vector<Link> links_;
  std::vector<HbmRange> touched_;
};

}  // namespace spyre::exec
