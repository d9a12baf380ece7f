#pragma once

#include "spyre/cost/matmul.h"
#include "spyre/device/exec/bound_op.h"

namespace spyre::timing {

/// A contraction as the closed forms of spyre/cost see it.
struct MatmulRoles {
  MatmulShape shape;  ///< of the whole execute
  MatmulSplit split;
  /// Both operands have a batch whose dim lies just outside the sticks: the default order, which is slow.
  bool batch_by_sticks = false;
};

/// Dims by where they occur: k not in the result, n in the result and the second operand, batch in both
/// operands and the result, m in the first operand and the result.
MatmulRoles roles_of(const exec::BoundOp& bound);

}  // namespace spyre::timing
