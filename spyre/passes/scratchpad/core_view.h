#pragma once

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
namespace spyre {

/// `count` pieces, `stride` sticks apart.
struct StickRun {
  int64_t stride = 1;
  int64_t count = 1;

  friend bool operator==(const StickRun&, const StickRun&) = default;
};

struct CoreView {
  std::vector<StickRun> runs;  ///< outermost first, the same on every core; none: one stick
  std::vector<int64_t> first;  ///< by core

  int64_t cores() const { return static_cast<int64_t>(first.size()); }
  /// What one core holds.
  int64_t sticks() const;
  /// `512 sticks on each of 4 cores`
  std::string to_string() const;

  friend bool operator==(const CoreView&, const CoreView&) = default;
};

/// The view of one operand (index tensors, inputs, output), or why it has none that LX can hold: it is
/// reached through an index tensor, or only a part of the buffer is touched.
using ViewOrReason = std::variant<CoreView, std::string>;
ViewOrReason core_view(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts);

}  // namespace spyre
