#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "spyre/device/device.h"

namespace spyre {

/// A device implementation as the conformance suite sees it.
struct DeviceUnderTest {
  std::string name;
  std::function<Result<std::unique_ptr<Device>>(const Machine&)> make;
  /// Name of a test -> why this device cannot pass it. The to-do list, or the point of the device.
  std::map<std::string, std::string> cannot;

  friend std::ostream& operator<<(std::ostream& out, const DeviceUnderTest& d) { return out << d.name; }
};

/// All devices, in registration order. Each test of the suite runs on each.
std::vector<DeviceUnderTest>& devices_under_test();

/// A fresh device on the toy card for every test: 8 segments of 1 MiB, 2 cores with an LX of 16 sticks.
class DeviceConformance : public testing::TestWithParam<DeviceUnderTest> {
 protected:
  void SetUp() override;
  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_;
};

}  // namespace spyre

/// Puts a device into the suite: SPYRE_DEVICE(null, make_null_device, {{"TestName", "reason"}});
#define SPYRE_DEVICE(name, make, ...)                                        \
  [[maybe_unused]] static const bool spyre_device_##name##_registered = [] { \
    ::spyre::devices_under_test().push_back({#name, make, __VA_ARGS__});     \
    return true;                                                             \
  }()
