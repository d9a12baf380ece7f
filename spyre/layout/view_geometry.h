#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace spyre {

/// Which elements of a base allocation a device tensor shows, the way PyTorch says it: sizes, strides and
/// storage offset, all in *logical host elements*, as if the base lay on the host with its own strides.
/// The base's `DeviceLayout` then says where each logical element lives on the card.
///
///     base  x = f16[1024, 256]      sizes [1024, 256]  strides [256, 1]  offset 0     the whole base
///     view  x[3:, 64:]              sizes [1021, 192]  strides [256, 1]  offset 832
///     view  x.t()                   sizes [256, 1024]  strides [1, 256]  offset 0     the whole base
struct ViewGeometry {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t storage_offset = 0;

  /// True when the view shows every element of its base, so that writing it may also define the padding.
  /// A layout alone cannot tell: f16[100] and f16[120] have the same one, and a write to the first 100
  /// elements of the second must leave the other 20 alone.
  bool whole_base = false;

  /// A fresh tensor: the base itself.
  static ViewGeometry whole(std::vector<int64_t> sizes, std::vector<int64_t> strides);

  /// A tensor of which the base's element count is known: `whole_base` is worked out. It is true when the
  /// view starts at 0, shows `base_numel` elements and leaves no gap and no overlap among them.
  static ViewGeometry of(std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t storage_offset,
                         int64_t base_numel);

  int64_t numel() const;

  friend bool operator==(const ViewGeometry&, const ViewGeometry&) = default;
};

/// Product of the sizes; 1 for none.
int64_t numel_of(std::span<const int64_t> sizes);

}  // namespace spyre
