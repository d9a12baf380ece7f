#include "spyre/lx/in_place.h"

#include <algorithm>

#include "spyre/ops/ops.h"

namespace spyre::lx {
namespace {

bool same_walk(const DeviceAccess& a, const DeviceAccess& b) {
  return a.dims == b.dims && a.lane == b.lane && a.lanes == b.lanes;
}

}  // namespace

bool same_mapping(const Analysis& analysis, const Holding& child, const Holding& parent) {
  const Residency &own = child.residency, &theirs = parent.residency;
  // A clone is filled before the operation runs: it would lie on what the operation still reads.
  if (!own.ineligible.empty() || own.clone || !theirs.ineligible.empty() || parent.buffer == child.buffer)
    return false;
  const BufferTouch& write = analysis.touches(child.buffer).front();
  const NormalOp& op = analysis.access().ops[write.node];
  if (!info_of(op.op.op).in_place || theirs.view != own.view) return false;
  const bool read = std::any_of(theirs.direct.begin(), theirs.direct.end(), [&](const BufferTouch& use) {
    return use.node == write.node && !use.writes;
  });
  const std::vector<Buffer>& buffers = analysis.graph().buffers;
  if (!read || *buffers[static_cast<size_t>(parent.buffer)].layout !=
                   *buffers[static_cast<size_t>(child.buffer)].layout)
    return false;
  // All of the child is written here, over parts that are not read afterwards.
  const std::vector<BufferTouch>& touches = analysis.touches(parent.buffer);
  return std::none_of(touches.begin(), touches.end(), [&](const BufferTouch& use) {
    return use.node == write.node && !same_walk(analysis.access().access(use), op.output());
  });
}

bool may_take_over(const Analysis& analysis, const Holding& child, const Holding& parent) {
  if (!same_mapping(analysis, child, parent)) return false;
  const size_t write = analysis.touches(child.buffer).front().node;
  const Residency& theirs = parent.residency;
  // A shuffle reads the parent just before the first of its readers runs, so one for this node is in time.
  return theirs.direct.back().node == write &&
         std::all_of(theirs.relayouts.begin(), theirs.relayouts.end(),
                     [&](const Relayout& r) { return r.readers.front().node <= write; });
}

}  // namespace spyre::lx
