#include "spyre/lx/compulsory.h"

#include <algorithm>

#include "spyre/lx/core_view.h"
#include "spyre/lx/graph_access.h"

namespace spyre::lx {
namespace {

/// The part of a buffer that one operand touches.
struct Part {
  const NormalOp* op;
  const DeviceAccess* access;
  int64_t sticks;  ///< that one core alone would move
};

struct Interval {
  int64_t begin, end;
};

Part part_of(const GraphAccess& access, const BufferTouch& touch) {
  NormalOp alone = access.ops[touch.node];
  for (Loop& loop : alone.access.loops) loop.split = 1, loop.step = 0;
  return {&access.ops[touch.node], &access.access(touch),
          sticks_moved(alone, touch.operand, access.layouts[touch.node])};
}

Interval walked(const Part& part, const AccessDim& dim) {
  if (!dim.indirect.empty()) return {0, dim.size};
  if (dim.loop < 0) return {dim.offset, dim.offset + 1};
  const int64_t extent = part.op->access.loops[static_cast<size_t>(dim.loop)].extent;
  return {dim.offset, dim.offset + (dim.tile ? ceil_div(extent, part.access->lanes) : extent)};
}

/// Known to share no stick. Two that see the buffer in different dimensions may: then the smaller is not counted, and the
/// sum stays a lower bound.
bool are_apart(const Part& a, const Part& b) {
  if (a.access->device_size() != b.access->device_size()) return false;
  for (size_t d = 0; d < a.access->dims.size(); ++d) {
    const Interval x = walked(a, a.access->dims[d]), y = walked(b, b.access->dims[d]);
    if (x.end <= y.begin || y.end <= x.begin) return true;
  }
  return false;
}

/// Sticks that are touched at least: of parts that may overlap, the largest.
int64_t touched_once(std::vector<Part> parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.sticks > b.sticks; });
  std::vector<Part> apart;
  int64_t sticks = 0;
  for (const Part& part : parts) {
    const auto from_it = [&](const Part& other) { return are_apart(part, other); };
    if (!std::all_of(apart.begin(), apart.end(), from_it)) continue;
    apart.push_back(part);
    sticks += part.sticks;
  }
  return sticks;
}

}  // namespace

Result<Bytes> compulsory_bytes(const DeviceGraph& graph) {
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  Bytes bytes;
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    const Buffer& buffer = graph.buffers[id];
    const bool result = graph.is_result(static_cast<BufferId>(id));
    if (!buffer.layout || (!buffer.is_input && !result)) continue;
    std::vector<Part> read, written;
    for (const BufferTouch& touch : access.touches[id]) {
      (touch.writes ? written : read).push_back(part_of(access, touch));
    }
    SPYRE_ASSIGN_OR_RETURN(const Bytes whole, buffer.layout->byte_size());
    // A result that another node reads again is not read for the first time.
    if (buffer.is_input) bytes += std::min(whole, kStickBytes * touched_once(std::move(read)));
    if (result) bytes += std::min(whole, kStickBytes * touched_once(std::move(written)));
  }
  return bytes;
}

}  // namespace spyre::lx
