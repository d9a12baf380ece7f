#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "spyre/device/exec/bound_op.h"
#include "spyre/device/exec/footprint.h"
#include "spyre/device/exec/pad_value.h"

/// How a buffer lies in memory, whoever looks at it: the common ground of an op's tensor, of the op that
/// wrote it and of the launch argument behind it. Dims have no names here; two views of one buffer agree on
/// strides.
namespace spyre::exec {

inline constexpr int64_t kNoPadding = std::numeric_limits<int64_t>::max();

/// Data that is one number from a coordinate on: where k < 67 is asked of 0, 1, 2, ..., the answer is 0 from 67 on.
struct Tail {
  int64_t begin = kNoPadding;
  float value = 0;
  friend bool operator==(const Tail&, const Tail&) = default;
};

struct MemoryDim {
  int64_t stride = 0;            ///< bytes from one step to the next
  int64_t steps = 1;             ///< that memory has; a stick dim counts in sticks
  int64_t per_stick = 1;         ///< coordinates in a step
  int64_t logical = kNoPadding;  ///< first coordinate that is padding, where there is any
  PadValue padding;              ///< what is there, beside data along the other dims
  Tail tail;                     ///< of the data
  int64_t written =
      kNoPadding;  ///< first coordinate of the gap that the op declared, where there is one and no core divides it
  int op_dim = -1;  ///< dim of the op, for a tensor's shape
  friend bool operator==(const MemoryDim&, const MemoryDim&) = default;
};

struct MemoryShape {
  int64_t base = 0;  ///< address of coordinate zero; in LX, of the first coordinate a core holds
  std::vector<MemoryDim> dims;
};

/// Bytes from the tensor's coordinate zero to where a core's slice of it begins; 0 for LX.
int64_t slice_offset(const BoundOp& bound, int tensor, int core);

/// Where in the whole buffer the part begins that a core holds in its LX: its first stick, in the order of
/// the tensor's dims. Two views of a buffer agree on it, however they cut its dims.
int64_t first_held_stick(const BoundOp& bound, int tensor, int core);

/// The shape of an op's tensor; no padding is known from the op alone.
MemoryShape shape_of(const BoundOp& bound, int tensor);

/// The shape of a launch argument at `address`, with the logical extents that its host shape tells. Without a
/// layout in the launch specification, no dims.
MemoryShape shape_of(const LaunchArg& arg, int64_t address);

/// Whether two views step through memory alike: the same strides for all dims that have more than one step,
/// the same length for all of those but the outermost. Dims that lie end to end count as one.
bool same_strides(const MemoryShape& a, const MemoryShape& b);

/// Whether every dim of a view is part of one dim of the buffer (heads inside rows, every other row) or joins
/// some that lie end to end: what slices, reshapes and transposes of the buffer look like. Of a dim with a gap the steps
/// before it count: every third row of two sticks walks two sticks of every six.
bool views(const MemoryShape& view, const MemoryShape& buffer);

/// Whether each of a view's strides is one of the buffer's: it may be a slice of it.
bool strides_within(const MemoryShape& view, const MemoryShape& buffer);

/// Where padding begins along a dim of `view`, in its own coordinates, from what is known of the buffer; and what it is.
struct Padding {
  int64_t begin = kNoPadding;
  PadValue value;
  Tail tail;                 ///< of the data before it
  std::optional<Fill> fill;  ///< of a constant: all of its values along this dim
};
Padding padding_along(const MemoryShape& view, const MemoryDim& dim, const MemoryShape& buffer);

/// Where the gap begins that the writer of the buffer left along a dim of `view`, in the view's coordinates.
int64_t written_extent(const MemoryShape& view, const MemoryDim& dim, const MemoryShape& buffer);

/// Whether an address is in the gap that the writer of the buffer declared along one of its dims.
bool in_gap(const MemoryShape& buffer, int64_t address);

/// The sticks that hold data: all steps before padding begins.
Footprint logical_footprint(const MemoryShape& shape);

}  // namespace spyre::exec
