#include "spyre/passes/layout/cut_loops.h"

#include <fmt/format.h>

#include "spyre/graph/normal_op.h"
#include "spyre/passes/layout/assign_layouts.h"

namespace spyre {
namespace {

Error with_origin(const Error& cause, const DeviceNode& node) {
  return Error(cause.kind,
               fmt::format("cut-loops: node '{}' ({}): {}", node.name, to_string(node.op.op), cause.message))
      .about(origin_of(node));
}

}  // namespace

Status cut_loops(DeviceGraph& graph) {
  for (DeviceNode& node : graph.nodes) {
    const Result<NormalOp> normal = normal_form(graph, node);
    if (!normal.ok()) return with_origin(normal.error(), node);
    const NormalAccess& access = normal.value().access;
    if (access.indices.empty()) continue;  // interleaved lanes: cut wherever it is needed
    size_t operand = 0;
    for_each_access(node.op, [&](Access& cut) { cut.index = access.indices[operand++]; });
    node.loops = access.loops;
  }
  return Status();
}

}  // namespace spyre
