#include "spyre/layout/view_geometry.h"

#include <algorithm>
#include <utility>

namespace spyre {
namespace {

/// True when the elements are exactly 0 .. numel-1: some order of the axes is contiguous.
bool fills_a_range(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, size
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) {
      axes.emplace_back(strides[i], sizes[i]);
    }
  }
  std::ranges::sort(axes);
  int64_t expected = 1;
  for (const auto& [stride, size] : axes) {
    if (stride != expected) {
      return false;
    }
    expected *= size;
  }
  return true;
}

}  // namespace

int64_t numel_of(std::span<const int64_t> sizes) {
  int64_t numel = 1;
  for (const int64_t n : sizes) {
    numel *= n;
  }
  return numel;
}

ViewGeometry ViewGeometry::whole(std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  return {.sizes = std::move(sizes), .strides = std::move(strides), .storage_offset = 0, .whole_base = true};
}

ViewGeometry ViewGeometry::of(std::vector<int64_t> sizes, std::vector<int64_t> strides,
                              int64_t storage_offset, int64_t base_numel) {
  const bool whole = storage_offset == 0 && sizes.size() == strides.size() && numel_of(sizes) == base_numel &&
                     fills_a_range(sizes, strides);
  return {.sizes = std::move(sizes),
          .strides = std::move(strides),
          .storage_offset = storage_offset,
          .whole_base = whole};
}

int64_t ViewGeometry::numel() const {
  return numel_of(sizes);
}

}  // namespace spyre
