#include "spyre/layout/element_map.h"

#include <fmt/format.h>
#include <initializer_list>
#include <limits>

#include <algorithm>
#include <optional>
#include <utility>

#include "spyre/layout/tile_axis.h"

namespace spyre {
namespace {

Error refused(const DeviceLayout& layout, std::string why) {
  return Error(ErrorKind::kInvalidArgument, "Invalid device sizes and stride map for host sizes and strides")
      .note(fmt::format("{}: {}", layout.to_string(), why));
}

std::vector<MapAxis> standard_axes(const DeviceLayout& layout) {
  const std::vector<int64_t> device_strides = layout.device_strides();
  std::vector<MapAxis> axes;
  for (size_t i = 0; i < device_strides.size(); ++i) {
    axes.push_back({layout.device_size[i], layout.stride_map[i], device_strides[i]});
  }
  return axes;
}

/// Rows shorter than what an arrangement spreads leave its coarse digits at zero: a step of one would be past
/// the end of the row, that is, in another row. Such a digit carries data at position 0 only.
void clip_to_row(std::vector<MapAxis>& axes, int64_t lane_stride, std::initializer_list<size_t> digits) {
  const auto is_digit = [&](size_t i) { return std::find(digits.begin(), digits.end(), i) != digits.end(); };
  int64_t row = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!is_digit(i) && axes[i].extent > 1 && axes[i].host_stride > lane_stride)
      row = std::min(row, axes[i].host_stride);
  }
  for (const size_t i : digits) {
    if (axes[i].host_stride >= row) axes[i].host_stride = -1;
  }
}

/// Rows shorter than a stick may have more than one: the others are padding.
std::vector<MapAxis> plain_axes(const DeviceLayout& layout) {
  std::vector<MapAxis> axes = standard_axes(layout);
  const MapAxis stick = axes.back();
  if (const std::optional<size_t> tile = tile_axis(layout)) {
    clip_to_row(axes, stick.host_stride, {*tile, axes.size() - 1});
  }
  return axes;
}

/// Groups of 4 of the two halves of a stick take turns.
Result<std::vector<MapAxis>> narrowed_axes(const DeviceLayout& layout) {
  std::vector<MapAxis> axes = standard_axes(layout);
  const MapAxis stick = axes.back();
  if (stick.extent % 8 != 0) {
    return refused(layout, "FP32_TO_DL16 needs sticks of a multiple of 8 elements");
  }
  if (stick.host_stride <= 0) {
    return axes;  // Only lane 0 carries data, and lane 0 stays where it is.
  }
  axes.pop_back();
  axes.push_back({stick.extent / 8, 4 * stick.host_stride, 8});
  axes.push_back({2, stick.extent / 2 * stick.host_stride, 4});
  axes.push_back({4, stick.host_stride, 1});
  clip_to_row(axes, stick.host_stride, {axes.size() - 3, axes.size() - 2, axes.size() - 1});
  return axes;
}

/// Groups of 4 of a 16-bit stick alternate over a pair of wider sticks.
Result<std::vector<MapAxis>> widened_axes(const DeviceLayout& layout) {
  std::vector<MapAxis> axes = standard_axes(layout);
  const MapAxis stick = axes.back();
  if (stick.host_stride <= 0) {
    return axes;
  }
  const size_t tile_at = axes.size() >= 3 ? axes.size() - 3 : 0;
  const MapAxis tile = axes[tile_at];
  if (axes.size() < 2 || tile.host_stride != stick.extent * stick.host_stride || tile.extent % 2 != 0) {
    return refused(layout, "DL16_TO_FP32 needs full sticks and an even stick count");
  }
  axes.pop_back();
  axes.push_back({stick.extent / 4, 8 * stick.host_stride, 4});
  axes.push_back({4, stick.host_stride, 1});
  axes[tile_at] = {tile.extent / 2, 2 * tile.host_stride, 2 * tile.device_stride};
  axes.insert(axes.begin() + static_cast<int64_t>(tile_at) + 1,
              MapAxis{2, 4 * stick.host_stride, tile.device_stride});
  clip_to_row(axes, stick.host_stride, {tile_at, tile_at + 1, axes.size() - 2, axes.size() - 1});
  return axes;
}

/// fp8 weights [K, N] in sticks of 2 (k) x 64 (n). The standard layout of the matrix names K and N.
Result<std::vector<MapAxis>> fp8_weight_axes(const DeviceLayout& layout) {
  const bool matrix = layout.device_size.size() == 3 && layout.elems_per_stick() == 128 &&
                      layout.stride_map[2] == 1 && layout.stride_map[1] > 0 &&
                      layout.device_size[0] == ceil_div(layout.stride_map[1], 128);
  if (!matrix) {
    return refused(layout, "QFP8WT needs the standard layout of a contiguous 8-bit matrix [K, N]");
  }
  const int64_t k = layout.device_size[1];
  const int64_t n = layout.stride_map[1];
  if (k % 2 != 0 || n % 64 != 0) {
    return refused(layout,
                   fmt::format("QFP8WT needs an even K and a multiple of 64 for N, found K={} N={}", k, n));
  }
  return std::vector<MapAxis>{{n / 64, 64, 64 * k}, {k / 2, 2 * n, 128}, {64, 1, 2}, {2, n, 1}};
}

Result<std::vector<MapAxis>> axes_of(const DeviceLayout& layout) {
  switch (layout.element_arrangement) {
    case ElementArrangement::STANDARD:
      return plain_axes(layout);
    case ElementArrangement::EXX2:
      return standard_axes(layout);
    case ElementArrangement::DL16_TO_FP32:
      return widened_axes(layout);
    case ElementArrangement::FP32_TO_DL16:
      return narrowed_axes(layout);
    case ElementArrangement::QFP8WT:
      return fp8_weight_axes(layout);
    case ElementArrangement::QFP8CH:
      break;
  }
  return Error(
      ErrorKind::kUnsupported,
      fmt::format("Element arrangement {} cannot be moved between host and card: its order is not public",
                  to_string(layout.element_arrangement)));
}

}  // namespace

Result<ElementMap> ElementMap::of(const DeviceLayout& layout) {
  SPYRE_TRY(layout.check_well_formed());
  SPYRE_ASSIGN_OR_RETURN(std::vector<MapAxis> axes, axes_of(layout));
  ElementMap map(std::move(axes));
  for (size_t i = 0; i < map.axes_.size(); ++i) {
    if (map.axes_[i].is_digit()) {
      map.digits_.push_back(i);
    }
  }
  // Stable: on a tie the stick, which is last in device order, stays last.
  std::ranges::stable_sort(map.digits_, std::greater<>(),
                           [&](size_t axis) { return map.axes_[axis].host_stride; });
  for (size_t i = 0; i + 1 < map.digits_.size(); ++i) {
    const size_t a = map.digits_[i];
    const size_t b = map.digits_[i + 1];
    const bool with_stick = b + 1 == map.axes_.size();
    if (map.axes_[a].host_stride == map.axes_[b].host_stride && !with_stick) {
      return refused(layout, fmt::format("two axes step by {} host elements", map.axes_[a].host_stride));
    }
  }
  return map;
}

std::optional<int64_t> ElementMap::find(int64_t host_offset) const {
  int64_t rest = host_offset;
  int64_t device = 0;
  for (const size_t i : digits_) {
    const MapAxis& axis = axes_[i];
    const int64_t digit = rest / axis.host_stride;
    if (digit >= axis.extent) {
      return std::nullopt;
    }
    rest -= digit * axis.host_stride;
    device += digit * axis.device_stride;
  }
  return rest == 0 && host_offset >= 0 ? std::optional(device) : std::nullopt;
}

Result<int64_t> ElementMap::device_offset(int64_t host_offset) const {
  if (const auto found = find(host_offset)) {
    return *found;
  }
  return Error(ErrorKind::kOutOfRange,
               fmt::format("Invalid device tensor storage offset: the layout has no place for element {}",
                           host_offset));
}

Status check_holds(const DeviceLayout& layout, int64_t elements) {
  SPYRE_TRY(layout.check_well_formed());
  if (layout.device_size.size() > kMaxLayoutDims) {
    return refused(
        layout, fmt::format("found {} axes, allowed: at most {}", layout.device_size.size(), kMaxLayoutDims));
  }
  if (std::ranges::any_of(layout.device_size, [](int64_t n) { return n < 1; }) && elements > 0) {
    return refused(layout, fmt::format("an axis is empty, and there are {} elements", elements));
  }
  int64_t reach = 0;
  for (size_t i = 0; i < layout.device_size.size(); ++i) {
    int64_t span = 0;
    if (__builtin_mul_overflow(layout.device_size[i], layout.stride_map[i], &span) ||
        __builtin_add_overflow(reach, std::max<int64_t>(span, 0), &reach)) {
      return refused(layout, fmt::format("a stride of {} is too large", layout.stride_map[i]));
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const ElementMap map, ElementMap::of(layout));
  // Offsets below `range` are left to the digits that follow.
  int64_t range = elements;
  for (const size_t i : map.digits()) {
    const MapAxis& axis = map.axes()[i];
    if (range > 0 && (range - 1) / axis.host_stride >= axis.extent) {
      return refused(layout, fmt::format("it has no place for element {} of {}",
                                         axis.extent * axis.host_stride, elements));
    }
    range = std::min(range, axis.host_stride);
  }
  if (range > 1) {
    return refused(layout, fmt::format("it has no place for element 1 of {}", elements));
  }
  return {};
}

std::vector<int64_t> ElementMap::copies() const {
  std::vector<int64_t> offsets = {0};
  for (const MapAxis& axis : axes_) {
    if (!axis.is_broadcast()) {
      continue;
    }
    std::vector<int64_t> all;
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < axis.extent; ++i) {
        all.push_back(offset + i * axis.device_stride);
      }
    }
    offsets = std::move(all);
  }
  return offsets;
}

}  // namespace spyre
