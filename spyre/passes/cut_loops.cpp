#include "spyre/passes/cut_loops.h"

#include <fmt/format.h>

#include "spyre/graph/normal_op.h"
#include "spyre/passes/assign_layouts.h"

namespace spyre {
namespace {

Error with_origin(const Error& cause, const Node& node) {
  return Error(cause.kind, fmt::format("cut-loops: node '{}' ({}): {}", node.name,
                                       to_string(device_op(node).op), cause.message))
      .about(origin_of(node));
}

}  // namespace

Status cut_loops(Graph& graph) {
  for (Node& node : graph.nodes) {
    const Result<NormalOp> normal = normalize_op(graph, node, operand_layouts(graph, node));
    if (!normal.ok()) return with_origin(normal.error(), node);
    const NormalAccess& access = normal.value().access;
    if (access.indices.empty()) continue;  // interleaved lanes: cut wherever it is needed
    DeviceOp op = normal.value().op;
    size_t operand = 0;
    for (auto& [name, index] : op.indices) index.index = access.indices[operand++];
    for (Access& input : op.inputs) input.index = access.indices[operand++];
    op.output.index = access.indices[operand];
    node.loops = access.loops;
    set_device_op(graph, node, op, graph.buffers[static_cast<size_t>(op.output.buffer)].dtype);
  }
  return Status();
}

}  // namespace spyre
