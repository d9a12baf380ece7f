#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

/// Copies between layouts whose sticks hold other elements together, or the same ones in another order, where no single
/// copy of the card does it: 32-bit values along another dimension, lanes that a conversion has interleaved.
///
/// Why it takes more than one: only a restickify moves elements from lane to lane, it knows 16-bit elements only, and it
/// restickifies *whole* sticks. So the memory of both layouts is seen under a second name, as rows of 16-bit lanes (a 32-bit
/// value is two neighbours). Under that name every layout is an ordinary array; two layouts differ only in the order of
/// its digits, and an order is changed while the digits are rows:
///
///     x float32[r, c], sticks along c           lanes of x  [r, (c w)]            w: the half-words of an element
///     y the same, sticks along r                lanes of y  [c, (r w)]
///
///       t[r, (c w)] = lanes of x                t with its stick along r          restickify
///       u[c, (r w)] = t                         u with its stick along c          restickify
///       lanes of y  = u                                                           restickify
///
///     x float32 as widening leaves it           lanes of x  [r, (p h g e w)]      column 64p + 8g + 4h + e (element_map.h)
///     y in the standard order                   lanes of y  [r, (p g h e w)]
///
///       t = lanes of x, u = t, lanes of y = u   t and u with their sticks along r: two restickify around a copy of rows
///
/// Which sticks `t` and `u` have is for the layout search to say; where there is no second dimension, one element to a
/// stick does, at the price of 64 times the bytes.
namespace spyre {

/// Such a copy, as a graph of its own: its input is the memory of `from` as rows of lanes, its result that of `to`. Layouts
/// are assigned, and `bytes` is what it moves.
struct LanePermutation {
  DeviceGraph graph;
  BufferId from = -1, to = -1;
  int64_t bytes = 0;
};

/// Whose layout the first one is: that of a memory of which the buffer is a part (an input that is a view), or of the buffer.
enum class PartOf : uint8_t { kMemory, kItself };

/// From one layout of a buffer to another. None where they do not tell the same dimensions apart, hold something else than
/// 16 or 32 bits, or differ by more than one such step: their sticks run along different dimensions *or* order their lanes
/// differently.
///
/// Each that is found is a search of its own. So answers are remembered, for all buffers of one shape (the taps of a
/// convolution, the parts of an fp32 product), and after `most` searches no others are begun: a graph of large products has
/// thousands of pairs, most of them for layouts that nobody chooses, and a refusal has to come in seconds.
class LanePermutations {
 public:
  explicit LanePermutations(int most) : searches_left_(most) {}

  /// Null: there is none.
  std::shared_ptr<const LanePermutation> find(const Buffer& buffer, const DeviceLayout& from,
                                              const DeviceLayout& to, PartOf part);

 private:
  int searches_left_;
  std::map<std::vector<int64_t>, std::shared_ptr<const LanePermutation>> known_;
};

}  // namespace spyre
