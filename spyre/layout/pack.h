#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/layout/convert.h"
#include "spyre/layout/device_layout.h"
#include "spyre/layout/host_type.h"
#include "spyre/layout/view_geometry.h"

namespace spyre {

/// A tensor in host memory. `data` is its first element; strides count elements of `type` and may be
/// anything: transposed, stepped, 0 where a source is expanded.
template <typename Byte>
struct BasicHostBuffer {
  Byte* data = nullptr;
  HostType type = HostType::kFloat16;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};
using HostBuffer = BasicHostBuffer<std::byte>;             ///< written by unpack
using ConstHostBuffer = BasicHostBuffer<const std::byte>;  ///< read by pack

/// Writes a host tensor into a device tensor: converts each element to the layout's format and puts it where
/// the layout says.
///
/// `device_bytes` is the memory of the whole base that `layout` describes; `view` says which of its elements
/// the device tensor shows. Exactly those are written. Only when the view is the whole base are bytes written
/// that belong to no element: the padding becomes zeros, so that equal tensors have equal images and a sum
/// over a padded axis stays right.
///
/// Works on all threads of `parallel_for`; the result does not depend on how many there are.
///
/// Refused: sizes that differ from the view's, a pair of types that cannot be converted, a view that reaches
/// past its layout or shows an element twice (stride 0), a base larger than `device_bytes`, and a value
/// that the card's format cannot hold: `value 2147483648 at index [3] does not fit the card's 32-bit
/// integers`. After the last of these the view's elements are unspecified; nothing else has been touched.
Status pack(const ConstHostBuffer& src, const DeviceLayout& layout, const ViewGeometry& view,
            std::span<std::byte> device_bytes, Sen169Policy policy = Sen169Policy::kPublished);

/// Reads a device tensor into a host tensor of any strides. The mirror image of `pack`; a view may show an
/// element many times, the destination may not be expanded. Where the layout has copies of an element
/// (broadcast axes), the first is read.
Status unpack(std::span<const std::byte> device_bytes, const DeviceLayout& layout, const ViewGeometry& view,
              const HostBuffer& dst, Sen169Policy policy = Sen169Policy::kPublished);

/// Sets every element of a device tensor to one value, given as the bits of the layout's format (low bits
/// first). Honours views; on a whole base the padding becomes zeros, as after `pack`.
Status fill(std::span<std::byte> device_bytes, const DeviceLayout& layout, const ViewGeometry& view,
            uint64_t element_bits);

}  // namespace spyre
