#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "spyre/layout/device_layout.h"

namespace spyre {

/// The dense tensor that a layout was made for, found from its strides alone.
///
///     device_size [2, 4, 64]   stride_map [64, 100, 1]   400 elements   ->   [4, 100]   [100, 1]
struct DenseTensor {
  std::vector<int64_t> size, stride;  ///< strides fall: those of a contiguous tensor
};

/// None where the strides are not those of a dense tensor.
std::optional<DenseTensor> dense_tensor(const DeviceLayout& layout, int64_t elements);

}  // namespace spyre
