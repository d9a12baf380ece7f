#pragma once

#include "spyre/cost/matmul.h"
#include "spyre/graph/normal_op.h"

namespace spyre::lx {

/// A matrix product as the closed forms of cost/ see it.
struct MatmulRoles {
  MatmulShape shape;
  MatmulSplit split;
};

/// Loops by what they do: summed (k), along the result's stick (n), in both operands (batch), or rows (m). A weight that no
/// batch loop walks is shared by the whole batch, which is then as good as more rows.
MatmulRoles roles_of(const NormalOp& op);

}  // namespace spyre::lx
