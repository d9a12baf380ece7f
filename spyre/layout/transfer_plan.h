#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/layout/device_layout.h"
#include "spyre/layout/element_map.h"
#include "spyre/layout/view_geometry.h"

namespace spyre {

/// One perfect loop nest of a transfer: every host element it visits and the device position of each.
/// All vectors are outermost first and equally long; strides and offsets count elements.
///
///     f16[512, 240], whole, host contiguous: two nests, because 240 is three sticks and 48 lanes
///
///                 counts         host strides   device strides   host offset   device offset
///       full      [3, 512, 64]   [64, 240, 1]   [32768, 64, 1]             0               0
///       rest      [1, 512, 48]   [64, 240, 1]   [32768, 64, 1]           192           98304
///
/// There is one loop for each device axis, in device order, so counts can be read against `device_size`; an
/// axis that the nest does not walk has count 1. Two more kinds of loop exist: a broadcast axis has host
/// stride 0, and an expanded view axis (read only) has device stride 0.
struct Nest {
  std::vector<int64_t> counts;
  std::vector<int64_t> host_strides;
  std::vector<int64_t> device_strides;
  int64_t host_offset = 0;
  int64_t device_offset = 0;

  friend bool operator==(const Nest&, const Nest&) = default;
};

/// The nests that move a view between the card and a host tensor of the same sizes, whose strides (in
/// elements, 0 where it is expanded) are `host_strides`. Together they visit each element of the view once;
/// padding belongs to none of them. Sorted by device offset; none for a view without elements.
///
/// How: a view axis is an arithmetic progression of host offsets, and a layout reads an offset as digits
/// (see `ElementMap`). Cutting the progression wherever a digit would carry gives blocks in which every digit
/// either stands still or counts evenly; a nest is one block of every view axis.
///
///     columns 100 .. 299 of a row     |..100-127|128-191|192-255|256-299..|     head, two full sticks, tail
///
/// None: a view that is legal but needs more nests than are worth having (a diagonal, overlapping windows across sticks,
/// a step that never meets the stick again); `pack` and `unpack` then go element by element. Refused with kOutOfRange: a
/// view that reaches past the layout.
Result<std::optional<std::vector<Nest>>> plan_nests(const ElementMap& map, const ViewGeometry& view,
                                                    std::span<const int64_t> host_strides);

}  // namespace spyre
