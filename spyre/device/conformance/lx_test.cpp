// What every device promises about its scratchpads.

#include <cmath>
#include <cstring>

#include "spyre/device/conformance/conformance.h"
#include "spyre/device/lx.h"

namespace spyre {
namespace {

TEST_P(DeviceConformance, EachCoreHasItsOwnScratchpad) {
  const auto zero = device().lx(0);
  const auto one = device().lx(1);
  ASSERT_TRUE(zero.ok() && one.ok());
  EXPECT_EQ(zero.value().size(), 16u * 128u);
  zero.value()[0] = std::byte{1};
  one.value()[0] = std::byte{2};
  EXPECT_EQ(device().lx(0).value()[0], std::byte{1});
  EXPECT_EQ(device().lx(1).value()[0], std::byte{2});
}

TEST_P(DeviceConformance, ACoreThatDoesNotExistHasNoScratchpad) {
  for (const int core : {-1, 2}) {
    const auto lx = device().lx(core);
    ASSERT_FALSE(lx.ok());
    EXPECT_EQ(lx.error().kind, ErrorKind::kOutOfRange);
    EXPECT_EQ(lx.error().message,
              "core " + std::to_string(core) + " does not exist: the card has cores 0 to 1");
  }
}

TEST_P(DeviceConformance, ResetPoisonsScratchpadsWithNotANumber) {
  const auto lx = device().lx(1).value();
  for (int round = 0; round < 2; ++round) {
    uint16_t half = 0;
    float single = 0;
    std::memcpy(&half, lx.data() + 126, sizeof half);
    std::memcpy(&single, lx.data() + 1024, sizeof single);
    EXPECT_EQ(half, kLxPoison);
    EXPECT_TRUE(std::isnan(single));
    std::memset(lx.data(), 0, lx.size());
    ASSERT_TRUE(device().reset().ok());
  }
}

}  // namespace
}  // namespace spyre
