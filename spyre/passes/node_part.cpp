#include "spyre/passes/node_part.h"

namespace spyre {

Node part_of(const Graph& graph, const Node& node, const std::string& loop, int64_t begin, int64_t extent,
             std::string_view suffix) {
  Node part = node;
  part.name += suffix;
  make_step_of(node, part);
  for (Loop& l : part.loops) {
    if (l.name == loop) l.extent = extent;
  }
  DeviceOp op = device_op(node);
  const auto shift = [&](Access& access) { access.index = shifted(access.index, loop, begin); };
  for (auto& [name, access] : op.indices) shift(access);
  for (Access& access : op.inputs) shift(access);
  shift(op.output);
  set_device_op(graph, part, op, graph.buffers[static_cast<size_t>(op.output.buffer)].dtype);
  return part;
}

}  // namespace spyre
