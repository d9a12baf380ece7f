#pragma once

#include <optional>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// Positions along a dimension of a buffer, and those behind its end that a local buffer has for itself: rows
/// that end inside a stick but have whole ones of its storage.
///
///     buffer t : float16[2, 100] stride=[128, 1] storage=256     dimension 1: 128; without a storage: 100
int64_t walkable_extent(const DeviceGraph& graph, BufferId id, size_t dim);

/// Which orders of lanes copies may make, besides putting interleaved ones in order.
struct LaneMoves {
  /// A 16-bit buffer may get the interleaved lanes that narrowing leaves, although nothing was narrowed into it. Worth
  /// it for what is widened (interleaved, it widens into the standard order, beside 32-bit values from elsewhere) and for
  /// inputs that came so.
  bool interleave = false;
  /// 32-bit values may change their lanes, as pairs of half-words (permute_lanes.h).
  bool words = false;

  friend bool operator==(const LaneMoves&, const LaneMoves&) = default;
};

/// Those that may lead to a choice where there is none without them: a graph of 16-bit values that widens nothing has none.
LaneMoves useful_moves(const DeviceGraph& graph);

/// The layouts worth trying for every buffer, by buffer id, best guess first.
///
/// A buffer can have its stick along any of its dimensions, or hold one element per stick. Dimensions that
/// lie dense in memory and that some node walks through with one loop (a flattened view) are also offered as
/// one; a row that some node walks through in short pieces is also offered in pieces, each with a stick of
/// its own (heads of 32 elements). Element orders that only conversions make are offered when the graph has
/// such conversions, or an input that comes from one.
///
///     buffer [4, 100]  ->  stick on columns, stick on rows, one element per stick
///
/// An input has its real layout first; what follows is what a copy of it could have. A result whose layout is
/// given has no other.
Result<std::vector<std::vector<DeviceLayout>>> layout_candidates(const DeviceGraph& graph,
                                                                 LaneMoves moves = {});

/// Layouts of an argument that no node asks for, and that copies between those asked for may need on their way. A view may see
/// other dimensions than its memory has, and a copy has to know where both end: so those of its memory, where it is all of it,
/// and those of the view with its dense ones joined, the rows among them or not.
///
///     input x : float32[210] layout=([3, 3, 32], [32, 70, 1], ..)                 along [3, 70]
///     input x : float32[70, 3] layout=([3, 3, 32], [32, 70, 1], ..)               along [3, 70], then along [210]
///     input x : float16[2, 4, 4, 128] stride=[2176, 512, 128, 1] offset=128       along [2, 16, 128]: 4 of 17 rows are no group
std::vector<DeviceLayout> layouts_on_the_way(const DeviceGraph& graph, BufferId id, LaneMoves moves);

/// The same layout with a dimension of one stick's length that only position 0 of carries data: the form in
/// which a tensor changes between whole sticks and one element per stick.
DeviceLayout with_lane_dimension(const DeviceLayout& layout);

/// The same layout with the rows along the host dimension of this stride in the order that narrowing leaves
/// in a stick: column 32 h + 4 g + e at 8 g + 4 h + e. None where there are no such rows, or no whole sticks
/// of them.
///
///     device_size [2, 128, 64]   stride_map [64, 1, 128]   ->   [2, 2, 8, 2, 4, 64]   [64, 64, 4, 32, 1,
///     128]
std::optional<DeviceLayout> with_interleaved_rows(const DeviceLayout& layout, int64_t stride);

}  // namespace spyre
