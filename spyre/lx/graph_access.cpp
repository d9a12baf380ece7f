#include "spyre/lx/graph_access.h"

namespace spyre::lx {

BufferId operand_buffer(const NormalOp& op, size_t operand) {
  if (operand < op.op.indices.size()) return op.op.indices[operand].second.buffer;
  operand -= op.op.indices.size();
  return operand < op.op.inputs.size() ? op.op.inputs[operand].buffer : op.op.output.buffer;
}

Result<GraphAccess> access_of(const DeviceGraph& graph) {
  GraphAccess access;
  access.touches.resize(graph.buffers.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    SPYRE_ASSIGN_OR_RETURN(NormalOp op, normal_form(graph, graph.nodes[n]));
    access.layouts.push_back(operand_layouts(graph, graph.nodes[n]));
    // A node that reads one buffer twice touches it twice: each operand moves bytes of its own.
    for (size_t i = 0; i < op.access.operands.size(); ++i) {
      const bool writes = i + 1 == op.access.operands.size();
      access.touches[static_cast<size_t>(operand_buffer(op, i))].push_back({n, i, writes});
    }
    access.ops.push_back(std::move(op));
  }
  return access;
}

}  // namespace spyre::lx
