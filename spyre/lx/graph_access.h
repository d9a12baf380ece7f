#pragma once

#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/normal_op.h"

namespace spyre::lx {

/// One operand of one node that is a given buffer.
struct BufferTouch {
  size_t node = 0;
  size_t operand = 0;  ///< in the order of NormalOp
  bool writes = false;
};

/// Every node of a graph in device coordinates, and for every buffer the operands that touch it, in the order
/// they run. Time is counted in nodes; a buffer lives from its first touch to its last.
struct GraphAccess {
  std::vector<NormalOp> ops;                              ///< by node
  std::vector<std::vector<const DeviceLayout*>> layouts;  ///< by node and operand; point into the graph
  std::vector<std::vector<BufferTouch>> touches;          ///< by buffer

  const DeviceAccess& access(const BufferTouch& touch) const {
    return ops[touch.node].access.operands[touch.operand];
  }
};

/// Needs layouts and cut loops. Stale as soon as the graph changes.
Result<GraphAccess> access_of(const DeviceGraph& graph);

/// The buffer of an operand of a node.
BufferId operand_buffer(const NormalOp& op, size_t operand);

}  // namespace spyre::lx
