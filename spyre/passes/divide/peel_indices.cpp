#include "spyre/passes/divide/peel_indices.h"

#include <optional>

#include "spyre/graph/normal_op.h"
#include "spyre/passes/divide/node_part.h"
#include "spyre/passes/layout/assign_layouts.h"

namespace spyre {
namespace {

struct Peel {
  std::string loop;
  int64_t whole = 0;  ///< elements in whole sticks
  int64_t rest = 0;
};

std::optional<Peel> needed_peel(const NormalOp& op) {
  for (size_t i = 0; i < op.op.indices.size(); ++i) {
    const DeviceAccess& index = op.index(i);
    if (index.lane < 0) continue;
    const Loop& loop = op.access.loops[static_cast<size_t>(index.lane)];
    const int64_t rest = loop.extent % index.lanes;
    if (loop.extent > index.lanes && rest != 0) return Peel{loop.name, loop.extent - rest, rest};
  }
  return std::nullopt;
}

}  // namespace

Status peel_indices(DeviceGraph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    SPYRE_ASSIGN_OR_RETURN(const NormalOp op, normal_form(graph, graph.nodes[i]));
    const std::optional<Peel> peel = needed_peel(op);
    if (!peel) continue;
    DeviceNode rest = part_of(graph.nodes[i], peel->loop, peel->whole, peel->rest, "_rest");
    graph.nodes[i] = part_of(graph.nodes[i], peel->loop, 0, peel->whole, "");
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(rest));
    --i;  // another index may need it along another loop
  }
  return Status();
}

}  // namespace spyre
