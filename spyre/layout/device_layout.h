#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "spyre/arch/data_format.h"
#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/base/units.h"

namespace spyre {

/// How one tensor lies in device memory. PyTorch users know it as `SpyreTensorLayout`.
///
/// The card moves whole sticks, so the host axis along the stick is cut in two: its quotient becomes an outer
/// device axis (the tiles), its remainder the last one (the stick).
///
///     host f16[1024, 256]          ->  device_size [4, 1024, 64]   stride_map [64, 256, 1]
///     element (i, j)               ->  (j / 64, i, j % 64)
///
/// Two vectors say it all. Device memory is always contiguous and row-major over `device_size`, so there are
/// no device strides to store; `stride_map[d]` is how many *host* elements one step along device axis d
/// advances:
///
///     host_offset   = sum over d of coord[d] * stride_map[d]       (axes with stride -1 are skipped)
///     device_offset = sum over d of coord[d] * device_strides()[d]
///
///     stride_map -1   an axis with no host counterpart: a host axis of size 1, or a made-up stick
///     stride_map  0   a broadcast axis: every position holds the same host element
///
/// Device positions that match no host element are *padding*. A *sparse* layout has a made-up stick: E lanes,
/// of which only lane 0 carries data.
///
/// The layout describes a whole allocation. A view shares its base's layout unchanged and differs only in
/// host sizes, strides and storage offset (see `ViewGeometry`).
///
/// Equality and hash are over all four fields, as written: two layouts with the same memory image can differ.
struct DeviceLayout {
  std::vector<int64_t> device_size;  ///< extents, outermost first; the last is the stick
  std::vector<int64_t> stride_map;   ///< host elements per step; same length
  DataFormat device_dtype = DataFormat::INVALID;
  ElementArrangement element_arrangement = ElementArrangement::STANDARD;

  /// The layout a tensor gets when nobody asks for another: host contiguous, stick on the last host axis, the
  /// first host axis just outside the stick, the others outermost in order.
  static Result<DeviceLayout> standard(std::span<const int64_t> host_size, DataFormat device_dtype);

  /// Any host strides and any order of axes. `dim_order` names host axes from outermost to the stick:
  ///
  ///     slots   = order[1], ..., order[n-1], order[0], then order[n-1] again as the stick
  ///     f16[512, 256], order [1, 0]       ->  device_size [8, 256, 64]      stride_map [16384, 1, 256]
  ///     f16[512, 256], order [0, 1, -1]   ->  device_size [256, 1, 512, 64] stride_map [1, -1, 256, -1]
  ///
  /// A last entry -1 (one more than the host has axes) asks for a sparse layout. The tile axis steps by
  /// E * stride even when a single stick holds the whole axis: the value is not capped at the axis' length.
  ///
  /// Refused: sizes and strides of different length, an order that is not a permutation, a format with no
  /// stick geometry.
  static Result<DeviceLayout> ordered(std::span<const int64_t> host_size,
                                      std::span<const int64_t> host_strides, DataFormat device_dtype,
                                      std::span<const int64_t> dim_order,
                                      ElementArrangement element_arrangement = ElementArrangement::STANDARD);

  /// The fields as given, for compilers and experts. Nothing is checked here; a layout that makes no sense is
  /// refused where it is used (`check_well_formed`, transfer planning).
  static DeviceLayout raw(std::vector<int64_t> device_size, std::vector<int64_t> stride_map,
                          DataFormat device_dtype,
                          ElementArrangement element_arrangement = ElementArrangement::STANDARD);

  /// A copy with another order inside the stick.
  DeviceLayout with_element_arrangement(ElementArrangement arrangement) const;

  /// Elements in one stick of this format, E; 0 when the format has no stick geometry.
  int64_t elems_per_stick() const { return spyre::elems_per_stick(device_dtype); }

  /// Row-major strides over `device_size`, in elements.
  std::vector<int64_t> device_strides() const;

  /// Device memory the tensor takes: whole sticks, padding and unused lanes included. 0 with an extent of 0.
  Result<Bytes> byte_size() const;

  /// At least one axis, as many strides as extents, no negative extent, no stride below -1, a last extent of
  /// one stick. Everything that walks a layout asks first.
  Status check_well_formed() const;

  /// `SpyreTensorLayout(device_size=[4, 512, 64], stride_map =[64, 256, 1],
  /// device_dtype=DataFormats.SEN169_FP16)` on one line; the blank before `=[` is upstream's, and scripts
  /// compare it. A STANDARD arrangement is not shown.
  std::string to_string() const;

  Json to_json() const;
  static Result<DeviceLayout> from_json(const Json& json);

  friend bool operator==(const DeviceLayout&, const DeviceLayout&) = default;
};

/// Row-major strides over `sizes`, in elements. An extent of 0 counts as 1, as PyTorch does.
std::vector<int64_t> contiguous_strides(std::span<const int64_t> sizes);

/// Bytes to ask the allocator for: the device image, but never less than the host's, so that PyTorch's own
/// "does this view fit its storage" checks, which count host bytes, hold for every legal view.
Bytes storage_bytes(Bytes device_bytes, int64_t host_numel, Bytes host_itemsize);

/// Where the fields sit in a pickled layout: a tuple that starts with its version.
///
///     version 3   (3, device_size, stride_map, device_dtype, element_arrangement)    written today
///     version 2   (2, device_size, stride_map, device_dtype)                         still loads
///     version 1   (1, device_size, dim_map, stride_map, device_dtype)                still loads, map
///     ignored
struct LayoutStateShape {
  int device_size;
  int stride_map;
  int device_dtype;
  int element_arrangement;  ///< kAbsent: the arrangement is STANDARD

  static constexpr int kAbsent = -1;
  static constexpr int64_t kVersion = 3;
};

/// The positions for a tuple of this version and length, or why it cannot be loaded.
Result<LayoutStateShape> layout_state_shape(int64_t version, int64_t length);

}  // namespace spyre

template <>
struct std::hash<spyre::DeviceLayout> {
  size_t operator()(const spyre::DeviceLayout& layout) const noexcept;
};
