#pragma once

#include <compare>
#include <cstdint>

#include "spyre/base/units.h"

namespace spyre {

/// A place in the memory of one card, in bytes from the start of its address space.
///
/// It is a number the card understands and nothing else: not a host pointer, not a token (see hbm.h), and not
/// tied to a card. Segment k of a machine starts at `k * segment_bytes`.
class DeviceAddress {
 public:
  constexpr DeviceAddress() = default;
  constexpr explicit DeviceAddress(int64_t value) : value_(value) {}

  constexpr int64_t value() const { return value_; }

  friend constexpr auto operator<=>(DeviceAddress, DeviceAddress) = default;
  friend constexpr DeviceAddress operator+(DeviceAddress a, Bytes n) {
    return DeviceAddress(a.value_ + n.count());
  }
  friend constexpr Bytes operator-(DeviceAddress a, DeviceAddress b) { return Bytes(a.value_ - b.value_); }

 private:
  int64_t value_ = 0;
};

/// Half-open: [begin, begin + size).
struct DeviceRange {
  DeviceAddress begin;
  Bytes size;

  constexpr DeviceAddress end() const { return begin + size; }
  constexpr bool contains(DeviceAddress a) const { return begin <= a && a < end(); }

  friend constexpr bool operator==(const DeviceRange&, const DeviceRange&) = default;
};

}  // namespace spyre
