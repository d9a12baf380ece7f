#include "spyre/layout/device_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spyre/base/json.h"
#include "spyre/base/text.h"

namespace spyre {
namespace {

constexpr int64_t kMadeUp = -1;  ///< a slot, or a stride, with no host axis behind it

Status check_order(std::span<const int64_t> order, int64_t rank) {
  const bool sparse = static_cast<int64_t>(order.size()) == rank + 1;
  if (!sparse && static_cast<int64_t>(order.size()) != rank) {
    return invalid(fmt::format(
        "Invalid dim_order {}: a tensor with {} dimensions takes {} entries, or one more with -1 last",
        list_text(order), rank, rank));
  }
  if (sparse && order.back() != kMadeUp) {
    return invalid(fmt::format("Invalid dim_order {}: the entry after all {} dimensions must be -1 (sparse)",
                               list_text(order), rank));
  }
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t dim : order.first(static_cast<size_t>(rank))) {
    if (dim < 0 || dim >= rank || seen[static_cast<size_t>(dim)]) {
      return invalid(
          fmt::format("Invalid dim_order {}: expected a permutation of 0..{}", list_text(order), rank - 1));
    }
    seen[static_cast<size_t>(dim)] = true;
  }
  return {};
}

Status check_host_shape(std::span<const int64_t> size, std::span<const int64_t> strides) {
  if (size.size() != strides.size()) {
    return invalid(fmt::format("Host size {} and host strides {} must have the same length", list_text(size),
                               list_text(strides)));
  }
  if (std::ranges::any_of(size, [](int64_t n) { return n < 0; })) {
    return invalid(fmt::format("Host size {} has a negative extent", list_text(size)));
  }
  return {};
}

Status check_stick_geometry(DataFormat format) {
  if (elems_per_stick(format) == 0) {
    return Error(ErrorKind::kUnsupported, fmt::format("Spyre backend does not support dtype with device "
                                                      "format {}: no whole number of elements fills a stick",
                                                      to_string(format)));
  }
  return {};
}

/// order rotated left by one, then the stick axis again.
std::vector<int64_t> slots_of(std::span<const int64_t> order) {
  std::vector<int64_t> slots(order.begin() + 1, order.end());
  slots.push_back(order.front());
  slots.push_back(order.back());
  return slots;
}

}  // namespace

std::vector<int64_t> contiguous_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(1, sizes[i]);
  }
  return strides;
}

Result<DeviceLayout> DeviceLayout::standard(std::span<const int64_t> host_size, DataFormat device_dtype) {
  std::vector<int64_t> order(host_size.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int64_t>(i);
  }
  return ordered(host_size, contiguous_strides(host_size), device_dtype, order);
}

Result<DeviceLayout> DeviceLayout::ordered(std::span<const int64_t> host_size,
                                           std::span<const int64_t> host_strides, DataFormat device_dtype,
                                           std::span<const int64_t> dim_order,
                                           ElementArrangement element_arrangement) {
  SPYRE_TRY(check_host_shape(host_size, host_strides));
  SPYRE_TRY(check_order(dim_order, static_cast<int64_t>(host_size.size())));
  SPYRE_TRY(check_stick_geometry(device_dtype));
  const int64_t elems = spyre::elems_per_stick(device_dtype);
  if (dim_order.empty()) {
    return raw({1, elems}, {kMadeUp, kMadeUp}, device_dtype, element_arrangement);
  }

  const std::vector<int64_t> slots = slots_of(dim_order);
  const int64_t stick_dim = slots.back();
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  for (size_t i = 0; i + 1 < slots.size(); ++i) {
    if (slots[i] == kMadeUp) {
      extents.push_back(1);
      strides.push_back(kMadeUp);
      continue;
    }
    const auto dim = static_cast<size_t>(slots[i]);
    const bool tiles = slots[i] == stick_dim;
    extents.push_back(tiles ? ceil_div(host_size[dim], elems) : host_size[dim]);
    strides.push_back(host_size[dim] == 1 ? kMadeUp : host_strides[dim] * (tiles ? elems : 1));
  }
  const bool made_up_stick = stick_dim == kMadeUp || host_size[static_cast<size_t>(stick_dim)] == 1;
  extents.push_back(elems);
  strides.push_back(made_up_stick ? kMadeUp : host_strides[static_cast<size_t>(stick_dim)]);
  return raw(std::move(extents), std::move(strides), device_dtype, element_arrangement);
}

DeviceLayout DeviceLayout::raw(std::vector<int64_t> device_size, std::vector<int64_t> stride_map,
                               DataFormat device_dtype, ElementArrangement element_arrangement) {
  return {std::move(device_size), std::move(stride_map), device_dtype, element_arrangement};
}

DeviceLayout DeviceLayout::with_element_arrangement(ElementArrangement arrangement) const {
  return raw(device_size, stride_map, device_dtype, arrangement);
}

std::vector<int64_t> DeviceLayout::device_strides() const {
  return contiguous_strides(device_size);
}

Result<Bytes> DeviceLayout::byte_size() const {
  const int64_t elems = elems_per_stick();
  const int bits = bits_of(device_dtype);
  if (bits == 0) {
    return Error(ErrorKind::kUnsupported,
                 fmt::format("No device element width for data format {}", spyre::to_string(device_dtype)));
  }
  if (elems == 0) {
    return Error(ErrorKind::kUnsupported,
                 fmt::format("No device stick geometry for data format {}", spyre::to_string(device_dtype)));
  }
  int64_t total = (elems * bits + 7) / 8;
  for (size_t i = 0; i + 1 < device_size.size(); ++i) {
    if (device_size[i] < 0 || __builtin_mul_overflow(total, device_size[i], &total)) {
      return Error(ErrorKind::kOutOfRange,
                   fmt::format("Device size {} is not a size that memory can have", list_text(device_size)));
    }
  }
  return Bytes(total);
}

Status DeviceLayout::check_well_formed() const {
  const auto refuse = [this](std::string_view why) {
    return invalid("Invalid device sizes and stride map for host sizes and strides")
        .note(fmt::format("{}: {}", to_string(), why));
  };
  if (device_size.empty() || device_size.size() != stride_map.size()) {
    return refuse("device_size and stride_map must have the same length, at least 1");
  }
  if (std::ranges::any_of(device_size, [](int64_t n) { return n < 0; })) {
    return refuse("an extent is negative");
  }
  if (std::ranges::any_of(stride_map, [](int64_t s) { return s < kMadeUp; })) {
    return refuse("a stride is below -1");
  }
  SPYRE_TRY(check_stick_geometry(device_dtype));
  if (device_size.back() != elems_per_stick()) {
    return refuse(fmt::format("the last extent must be one stick, {} elements", elems_per_stick()));
  }
  SPYRE_TRY(byte_size());
  return {};
}

std::string DeviceLayout::to_string() const {
  std::string text =
      fmt::format("SpyreTensorLayout(device_size={}, stride_map ={}, device_dtype=DataFormats.{}",
                  list_text(device_size), list_text(stride_map), spyre::to_string(device_dtype));
  if (element_arrangement != ElementArrangement::STANDARD) {
    text += fmt::format(", element_arrangement=ElementArrangement.{}", spyre::to_string(element_arrangement));
  }
  return text + ")";
}

Json DeviceLayout::to_json() const {
  Json json;
  json["device_size"] = device_size;
  json["stride_map"] = stride_map;
  json["device_dtype"] = spyre::to_string(device_dtype);
  json["element_arrangement"] = spyre::to_string(element_arrangement);
  return json;
}

Result<DeviceLayout> DeviceLayout::from_json(const Json& json) {
  const auto refuse = [](std::string_view why) {
    return Error(ErrorKind::kParse, fmt::format("Layout: {}", why));
  };
  const auto is_list = [&](const char* key) {
    return json.contains(key) && json[key].is_array() &&
           std::ranges::all_of(json[key], [](const Json& item) { return item.is_number_integer(); });
  };
  if (!json.is_object() || !is_list("device_size") || !is_list("stride_map")) {
    return refuse("expected an object with integer lists 'device_size' and 'stride_map'");
  }
  const auto format = data_format_from_name(json.value("device_dtype", ""));
  if (!format) {
    return refuse("'device_dtype' must be the name of a data format");
  }
  const auto arrangement = element_arrangement_from_name(json.value("element_arrangement", "STANDARD"));
  if (!arrangement) {
    return refuse("'element_arrangement' must be the name of an arrangement");
  }
  return raw(json["device_size"], json["stride_map"], *format, *arrangement);
}

Bytes storage_bytes(Bytes device_bytes, int64_t host_numel, Bytes host_itemsize) {
  return std::max(device_bytes, host_itemsize * host_numel);
}

Result<LayoutStateShape> layout_state_shape(int64_t version, int64_t length) {
  constexpr int kAbsent = LayoutStateShape::kAbsent;
  struct Row {
    int64_t version, length;
    LayoutStateShape shape;
  };
  constexpr Row kRows[] = {
      {1, 5, {.device_size = 1, .stride_map = 3, .device_dtype = 4, .element_arrangement = kAbsent}},
      {2, 4, {.device_size = 1, .stride_map = 2, .device_dtype = 3, .element_arrangement = kAbsent}},
      {3, 5, {.device_size = 1, .stride_map = 2, .device_dtype = 3, .element_arrangement = 4}},
  };
  for (const Row& row : kRows) {
    if (row.version != version) {
      continue;
    }
    if (row.length != length) {
      return invalid(fmt::format("Invalid SpyreTensorLayout state: version {} has {} entries, found {}",
                                 version, row.length, length));
    }
    return row.shape;
  }
  return invalid(fmt::format("Invalid SpyreTensorLayout state: version {} is unknown, 1 to {} can be loaded",
                             version, LayoutStateShape::kVersion));
}

}  // namespace spyre

size_t std::hash<spyre::DeviceLayout>::operator()(const spyre::DeviceLayout& layout) const noexcept {
  size_t seed = 0;
  const auto mix = [&seed](size_t value) {
    seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
  };
  mix(layout.device_size.size());
  for (const int64_t n : layout.device_size) {
    mix(std::hash<int64_t>()(n));
  }
  for (const int64_t n : layout.stride_map) {
    mix(std::hash<int64_t>()(n));
  }
  mix(static_cast<size_t>(layout.device_dtype));
  mix(static_cast<size_t>(layout.element_arrangement));
  return seed;
}
