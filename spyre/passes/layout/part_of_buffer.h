#pragma once

#include <optional>
#include <vector>

#include "spyre/graph/device_graph.h"

/// Parts of a buffer along its dimensions, for copies that hold what is read of them and no more.
///
///     buffer c : float16[31, 157] stride=[157, 1]        what two others were put into, side by side
///     load c[157*i + j + 126]                            i: 31, j: 31, reads the second: 31 of 157 from 126 on
///
/// The first may not be written yet where the second is read: a copy of all would move what nobody wrote.
namespace spyre {

/// Positions along each dimension of a buffer: `size` of them, from `low` on.
struct BufferPart {
  std::vector<int64_t> low, size;

  /// The element that the part begins with.
  int64_t start(const Buffer& buffer) const;

  friend bool operator==(const BufferPart&, const BufferPart&) = default;
};

/// The smallest part that holds every element the index names. None: it does not follow the dimensions of the buffer, or
/// they share elements. The index counts from the buffer's own offset.
std::optional<BufferPart> part_read(const Buffer& buffer, const Expr& index, const std::vector<Loop>& loops);

/// Whether an index names elements of the buffer's dimensions only, not what lies between or behind them in the storage
/// it is a view of: a copy of the buffer has not got those.
bool keeps_to_dimensions(const Buffer& buffer, const Expr& index, const std::vector<Loop>& loops);

/// The smallest part that holds both.
BufferPart joined(const BufferPart& a, const BufferPart& b);

/// The part, and what else of the buffer is in its sticks, as they lie in a layout of the whole.
BufferPart with_whole_sticks(BufferPart part, const Buffer& buffer, const DeviceLayout& layout);

/// How the part lies by itself, in the manner of a layout of the whole buffer. None: a dimension of the layout is no
/// dimension of the buffer, or its lanes are not in order.
std::optional<DeviceLayout> layout_of_part(const Buffer& buffer, const DeviceLayout& layout,
                                           const BufferPart& part);

}  // namespace spyre
