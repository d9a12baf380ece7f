#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "spyre/graph/normal_op.h"

/// Who holds what: the part of a buffer that each core touches in one node.
///
/// A core's part is a box of whole sticks of device memory. Written as a first stick and the strides from
/// there, with neighbouring dimensions joined where one continues the other, equal boxes have equal values:
///
///     device [16, 512, 64], rows (the 512) cut in 4       cut in 4 along the 16 instead
///       core c: first 128*c, runs {512: 16, 1: 128}         core c: first 2048*c, runs {1: 2048}
///
/// In LX a core holds its part packed, in the same order: the position of a stick follows from the runs. Two
/// nodes with equal views of a buffer therefore agree about every byte in every scratchpad.
///
/// A node may touch less than its cores hold: of a dimension that is not cut, a slice is enough. Cores that
/// differ only in loops the operand does not have hold the same part; such a view is *shared*.
namespace spyre::lx {

/// `count` pieces, `stride` sticks apart.
struct StridedRun {
  int64_t stride = 1;
  int64_t count = 1;

  friend bool operator==(const StridedRun&, const StridedRun&) = default;
};

struct CoreView {
  std::vector<StridedRun> runs;  ///< outermost first, the same on every core; none: one stick
  std::vector<int64_t> first;    ///< by core

  int64_t cores() const { return static_cast<int64_t>(first.size()); }
  /// What one core holds.
  int64_t sticks() const;
  /// Different parts among the cores; fewer than cores when the view is shared.
  int64_t parts() const;
  bool shared() const { return parts() < cores(); }
  /// `512 sticks on 4 cores`, `512 sticks on 4 cores, 2 parts`
  std::string to_string() const;

  friend bool operator==(const CoreView&, const CoreView&) = default;
};

/// The view of one operand (index tensors, inputs, output), or why it has none that LX can hold: it is
/// reached through an index tensor, or only a part of the buffer is touched.
using ViewOrReason = std::variant<CoreView, std::string>;
ViewOrReason core_view(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts);

/// Sticks of one operand that move when the operation runs, all cores together: each core moves the part it
/// works on, whoever else moves it too. What the card's counters count.
int64_t sticks_moved(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts);

/// The loops of a node, divided so that its operand has this view, with every loop the operand lacks left
/// whole; nothing when no division gives that. A shared view leaves cores over: `spare` is how many cores
/// each part has, and `spare_step` how far apart they are; the caller may give them to a loop that the
/// operand does not have.
struct AdoptedLoops {
  std::vector<Loop> loops;
  int64_t spare = 1, spare_step = 0;
};
std::optional<AdoptedLoops> loops_for_view(const NormalOp& op, size_t operand, const CoreView& view,
                                           std::span<const DeviceLayout* const> layouts);

}  // namespace spyre::lx
