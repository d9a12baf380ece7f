#include "spyre/passes/scratchpad/clone_input.h"

#include <algorithm>

#include "spyre/graph/core_map.h"

namespace spyre {

PlannedClone plan_clone(const Graph& graph, const GraphAccess& access, BufferId input, BufferPlace place) {
  const BufferTouch& touch = access.touches[static_cast<size_t>(input)].front();
  const NormalOp& reader = access.ops[touch.node];
  const std::vector<int64_t> steps = core_steps(reader);

  PlannedClone clone{.input = input, .before = touch.node};
  clone.buffer = graph.buffers[static_cast<size_t>(input)];
  clone.buffer.name += "_lx";
  clone.buffer.is_input = false;
  clone.buffer.place = place;
  for (size_t i = 0; i < reader.access.loops.size(); ++i) {
    if (!access.access(touch).uses(static_cast<int>(i))) continue;
    Loop loop = reader.access.loops[i];
    loop.reduced = false;
    // The cores must be those of the reader, also where the loops stand in another order here.
    loop.step = loop.split > 1 ? steps[i] : 0;
    clone.node.loops.push_back(std::move(loop));
  }
  const Expr& index = reader.access.indices[touch.operand];
  clone.node.source = graph.nodes[touch.node].source;
  const DeviceOp copy{.op = "identity", .inputs = {{input, index}}, .output = {input, index}};
  set_device_op(graph, clone.node, copy, clone.buffer.dtype);
  return clone;
}

void insert_clones(Graph& graph, std::vector<PlannedClone> clones) {
  // From the last position to the first, so that earlier positions stay right.
  std::stable_sort(clones.begin(), clones.end(),
                   [](const PlannedClone& a, const PlannedClone& b) { return a.before > b.before; });
  for (PlannedClone& clone : clones) {
    const BufferId copy = graph.add_buffer(std::move(clone.buffer));
    for (Node& node : graph.nodes) {
      for (Instruction& instruction : node.body) {
        if (instruction.is_load() && instruction.buffer == clone.input) instruction.buffer = copy;
      }
    }
    clone.node.name = graph.buffers[static_cast<size_t>(copy)].name;
    clone.node.target = copy;
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(clone.before),
                       std::move(clone.node));
  }
}

}  // namespace spyre
