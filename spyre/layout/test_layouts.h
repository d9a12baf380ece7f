#pragma once

#include <limits>
#include <vector>

#include "spyre/layout/convert.h"
#include "spyre/layout/device_layout.h"

/// The words in which the tests of this layer speak.
namespace spyre::test {

using Ints = std::vector<int64_t>;

inline constexpr auto kIn = Direction::kHostToDevice;
inline constexpr auto kOut = Direction::kDeviceToHost;
inline constexpr auto kVendor = Sen169Policy::kVendor;
inline constexpr auto kPublished = Sen169Policy::kPublished;
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr DataFormat kDl16 = DataFormat::SEN169_FP16;

inline DeviceLayout standard(const Ints& size, DataFormat format = kDl16) {
  return DeviceLayout::standard(size, format).value();
}

}  // namespace spyre::test
