#include "spyre/lx/matmul_roles.h"

namespace spyre::lx {

MatmulRoles roles_of(const NormalOp& op) {
  MatmulRoles roles;
  const std::vector<Loop>& loops = op.access.loops;
  roles.shape.shared_weight = true;
  const int n = op.output().lane;
  for (size_t i = 0; i < loops.size(); ++i) {
    const int loop = static_cast<int>(i);
    const auto split = static_cast<int>(loops[i].split);
    if (loops[i].reduced) {
      roles.shape.k *= loops[i].extent, roles.split.k *= split;
    } else if (loop == n) {
      roles.shape.n *= loops[i].extent, roles.split.n *= split;
    } else if (op.input(1).uses(loop)) {
      roles.shape.batch *= loops[i].extent, roles.split.b *= split;
      roles.shape.shared_weight = false;
    } else {
      roles.shape.m *= loops[i].extent, roles.split.m *= split;
    }
  }
  return roles;
}

}  // namespace spyre::lx
