#pragma once

#include <algorithm>
#include <string_view>

#include "spyre/base/units.h"

namespace spyre {

/// One card, as data. Every figure is a field here, and presets.cpp names the source of each value.
struct Machine {
  std::string_view name;

  int cores;          ///< that share the work of one program
  Bytes lx_per_core;  ///< software-managed scratchpad
  int segments;       ///< equal windows of the device address space
  Bytes segment_bytes;
  int program_segment;         ///< window that holds programs, not tensors
  Bytes span_limit;            ///< device memory of one tensor that one core reaches
  Bytes ring_bytes_per_cycle;  ///< each direction, between neighbouring cores

  constexpr Bytes address_space() const { return segment_bytes * segments; }
  constexpr Bytes program_base() const { return segment_bytes * program_segment; }
  /// Of the intermediate results of one program. Upstream keeps 2 GiB of the pool's segment for itself; a card with
  /// smaller segments keeps an eighth.
  constexpr Bytes largest_pool() const { return segment_bytes - std::min(gibibytes(2), segment_bytes / 8); }

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// The Spyre card.
const Machine& spyre_card();

/// A card small enough to check by eye: 2 cores, an LX of 16 sticks, 8 segments of 1 MiB.
const Machine& toy_card();

}  // namespace spyre
