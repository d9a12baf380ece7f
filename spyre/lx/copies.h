#pragma once

#include <optional>
#include <vector>

#include "spyre/lx/core_view.h"
#include "spyre/lx/graph_access.h"

/// Nodes that move whole buffers between device memory and LX, or between the cores' LX:
///
///     clone       x_lx = x        one fetch from device memory, whatever the number of readers
///     copy-out    y = y_lx        one write to device memory, however often y is read before and after
///     shuffle     b_lx = b        from one division of the cores to another, over the ring
namespace spyre::lx {

/// A touch that covers the whole buffer, so that its loops can carry a copy; nothing when there is none.
const BufferTouch* whole_touch(const DeviceGraph& graph, const GraphAccess& access, BufferId buffer);

/// A copy of the whole buffer onto itself, undivided: enough to ask how copies can be divided. Nothing where
/// the card has no such copy.
std::optional<NormalOp> model_of_copy(const DeviceGraph& graph, const GraphAccess& access,
                                      const BufferTouch& basis, BufferId buffer);

/// Whether that copy can be divided so that cores touch what this view says.
bool has_view(const NormalOp& model, const DeviceLayout& layout, const CoreView& view);

/// The node `to = from`, divided so that both sides have these views; nothing when its loops cannot be
/// divided so. Equal views make a plain copy, in which each core moves its own part; one side may then be in
/// device memory. Different ones make a shuffle, both sides in LX. `to` must be laid out as `from` is.
std::optional<DeviceNode> divided_copy(const DeviceGraph& graph, const GraphAccess& access,
                                       const BufferTouch& basis, BufferId from, BufferId to,
                                       const CoreView& from_view, const CoreView& to_view);

/// A view in which every core holds a part of its own, for a buffer whose readers all share parts: the loops
/// of the basis cut among `cores` cores, as evenly as they allow. Nothing when fewer cores would take part.
std::optional<CoreView> spread_view(const DeviceGraph& graph, const GraphAccess& access,
                                    const BufferTouch& basis, BufferId buffer, int64_t cores);

}  // namespace spyre::lx
