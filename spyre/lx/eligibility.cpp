#include "spyre/lx/eligibility.h"

#include <fmt/format.h>

#include <algorithm>

namespace spyre::lx {
namespace {

constexpr const char* kIndirect = "index tensor or indirectly accessed";

// Where a restickified dimension ends inside a stick, the rest of that stick is left as it was; in LX that may be
// anything.
bool turns_part_of_stick(const NormalOp& op) {
  return std::any_of(op.access.operands.begin(), op.access.operands.end(), [&](const DeviceAccess& access) {
    return access.lane < 0 || op.access.loops[static_cast<size_t>(access.lane)].extent % access.lanes != 0;
  });
}

// A copy of an input is made of its elements. What lies before, behind or between them in a larger storage is the
// caller's, and a node may read it through an index that leaves the view.
bool whole_storage(const Buffer& buffer) {
  return buffer.offset == 0 && (buffer.storage == 0 || buffer.storage == buffer.elements());
}

// Whether nodes know its memory as different elements: what a core holds of it then depends on the name.
bool has_two_names(const DeviceGraph& graph, BufferId id) {
  const auto names_it = [&](const Buffer& buffer) { return buffer.memory_of == id; };
  return graph.buffers[static_cast<size_t>(id)].memory_of >= 0 ||
         std::any_of(graph.buffers.begin(), graph.buffers.end(), names_it);
}

}  // namespace

std::string ineligible_buffer(const DeviceGraph& graph, const GraphAccess& access, MoveSet moves,
                              BufferId id) {
  const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
  const std::vector<BufferTouch>& touches = access.touches[static_cast<size_t>(id)];
  const auto writes = std::count_if(touches.begin(), touches.end(), [](const auto& t) { return t.writes; });
  const int64_t reads = std::ssize(touches) - writes;
  if (touches.empty()) return "not touched";
  if (buffer.elements() == 0) return "empty tensor";
  if (buffer.fill) return "constant";
  if (has_two_names(graph, id)) return "two names";
  if (buffer.is_input && writes > 0) return "mutation target";
  if (buffer.is_input && !moves.allows(Move::kCopyIn)) return "graph input";
  if (buffer.is_input && !whole_storage(buffer)) return "partial or offset access";
  if (!buffer.is_input && reads == 0) return graph.is_result(id) ? "graph output" : "no consumer";
  if (graph.is_result(id) && !moves.allows(Move::kCopyOut)) return "graph output";
  for (const BufferTouch& touch : touches) {
    if (access.ops[touch.node].access.indices.empty()) {
      return fmt::format("restickified from interleaved lanes by '{}'", graph.nodes[touch.node].name);
    }
    if (!touch.writes) continue;
    if (std::string reason = ineligible_touch(graph, access, moves, touch); !reason.empty()) return reason;
  }
  return "";
}

std::string ineligible_touch(const DeviceGraph& graph, const GraphAccess& access, MoveSet moves,
                             const BufferTouch& touch) {
  const NormalOp& op = access.ops[touch.node];
  const std::string& node = graph.nodes[touch.node].name;
  if (touch.operand < op.index_count()) return kIndirect;
  if (touch.writes && is_restickify(op) && turns_part_of_stick(op))
    return fmt::format("padding left by restickify '{}'", node);
  // Whole blocks that a core turns by itself are as good in LX; a view says whether they are. Without shuffles nothing
  // would bring such a block to its core.
  if (!touch.writes && is_restickify(op) && (!moves.allows(Move::kShuffle) || turns_part_of_stick(op)))
    return fmt::format("read by restickify '{}'", node);
  const std::vector<AccessDim>& dims = access.access(touch).dims;
  if (std::any_of(dims.begin(), dims.end(), [](const AccessDim& d) { return !d.indirect.empty(); }))
    return kIndirect;
  return "";
}

}  // namespace spyre::lx
