#include "spyre/device/timing/matmul_roles.h"

namespace spyre::timing {
namespace {

/// The first dim beyond the stick that has more than one step.
int just_outside(const program::Tensor& tensor) {
  for (const program::TensorDim& dim : tensor.dims) {
    const bool in_stick = dim.per_stick > 1;
    if (!in_stick && dim.scale > 0 && dim.extent > 1) return dim.dim;
  }
  return -1;
}

}  // namespace

MatmulRoles roles_of(const exec::BoundOp& bound) {
  MatmulRoles roles;
  const program::Tensor &left = bound.input(0), &right = bound.input(1), &out = bound.output();
  roles.shape.in_bytes = bits_of(right.format) / 8;
  roles.shape.out_bytes = bits_of(out.format) / 8;
  for (int d = 0; d < bound.dims(); ++d) {
    const int64_t extent = bound.limit[d];
    const int split = static_cast<int>(bound.op->dims[d].splits);
    if (!out.present(d)) {
      roles.shape.k *= extent, roles.split.k *= split;
    } else if (right.present(d) && left.present(d)) {
      roles.shape.batch *= extent, roles.split.b *= split;
      roles.shape.shared_weight = roles.shape.shared_weight && extent == 1;
      roles.batch_by_sticks |= extent > 1 && just_outside(left) == d && just_outside(right) == d;
    } else if (right.present(d)) {
      roles.shape.n *= extent, roles.split.n *= split;
    } else {
      roles.shape.m *= extent, roles.split.m *= split;
    }
  }
  return roles;
}

}  // namespace spyre::timing
