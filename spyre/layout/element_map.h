#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/layout/device_layout.h"

namespace spyre {

/// One axis of device memory: `extent` positions, `device_stride` elements apart on the card and
/// `host_stride` apart on the host. A host stride of 0 repeats the same element; -1 means that only position
/// 0 carries data.
struct MapAxis {
  int64_t extent;
  int64_t host_stride;
  int64_t device_stride;

  /// Part of a logical element's address, as a digit is part of a number.
  bool is_digit() const { return host_stride > 0 && extent > 1; }
  bool is_broadcast() const { return host_stride == 0 && extent > 1; }

  friend bool operator==(const MapAxis&, const MapAxis&) = default;
};

/// Where each logical element of a base lives on the card: the definition that every fast path must equal.
///
/// A layout says which host offset a device position shows. Going the other way reads the host offset as a
/// number in a mixed radix: the axes, by falling host stride, are its digits.
///
///     f16[512, 240]   device_size [4, 512, 64]   stride_map [64, 240, 1]
///     host offset 475 = 1 * 240 + 3 * 64 + 43    ->   row 1, tile 3, lane 43
///     device offset   = 1 * 64 + 3 * 32768 + 43
///
/// Taking the coarsest digit first is what makes padding padding: offset 240 is row 1, column 0, never
/// "row 0, column 240". Two axes with the same host stride would give one offset two readings and are
/// refused, unless one of them is the stick: then the other counts and the stick stays at lane 0 (one element
/// per stick).
///
/// A row shorter than its sticks uses the first of them:
///
///     f32[5, 7]   device_size [2, 5, 32]   stride_map [32, 7, 1]     tile 1 is padding, 32 is row 4, column 4
///
/// An element arrangement only changes the digits of the stick:
///
///     FP32_TO_DL16   col = 64 t + 32 h + 4 g + e   ->  stick t,       lane 8 g + 4 h + e
///     DL16_TO_FP32   col = 64 p + 8 g + 4 s + e    ->  stick 2 p + s, lane 4 g + e
///     QFP8WT         (k, n) of [K, N]              ->  sticks of 2 (k) x 64 (n), k innermost
///     EXX2           as STANDARD: two values a stick is a stick axis of size 2
///     QFP8CH         refused: its order is not public
class ElementMap {
 public:
  static Result<ElementMap> of(const DeviceLayout& layout);

  /// Axes in device order, outermost first, the trivial ones included.
  std::span<const MapAxis> axes() const { return axes_; }

  /// Indices into `axes` of the digits, by falling host stride.
  std::span<const size_t> digits() const { return digits_; }

  /// Where a logical element lives: its first copy, if the layout has broadcast axes. Empty when the layout
  /// has no place for it.
  std::optional<int64_t> find(int64_t host_offset) const;

  /// The same, with the reason: `Invalid device tensor storage offset ...`.
  Result<int64_t> device_offset(int64_t host_offset) const;

  /// Distances from the first copy of an element to each of its copies, the first (0) included.
  std::vector<int64_t> copies() const;

 private:
  explicit ElementMap(std::vector<MapAxis> axes) : axes_(std::move(axes)) {}

  std::vector<MapAxis> axes_;
  std::vector<size_t> digits_;
};

/// Most axes a layout may have.
inline constexpr size_t kMaxLayoutDims = 16;

/// Whether `elements` logical elements can live in a layout, for layouts that somebody else wrote: a file, a caller.
/// Its axes are at most kMaxLayoutDims and none is empty, its strides stay inside what can be counted, and every element
/// has a place of its own:
///
///     device_size [2, 64]   stride_map [64, 1]     128 elements: yes      129, 130, ...: no place for the last
///     device_size [2, 64]   stride_map [65, 1]     no place for 64
///     device_size [2, 64]   stride_map [64, 2]     no place for 1
Status check_holds(const DeviceLayout& layout, int64_t elements);

}  // namespace spyre
