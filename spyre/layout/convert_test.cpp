#include "spyre/layout/convert.h"

#include <gtest/gtest.h>

#include <vector>

namespace spyre {
namespace {

TEST(Convert, Int64StopsAtTheFirstValueInt32CannotHold) {
  const std::vector<int64_t> host = {1, -2147483648LL, 2147483648LL, 3};
  std::vector<int32_t> device(4);
  const auto convert =
      find_conversion(HostType::kInt64, DataFormat::IEEE_INT32, Direction::kHostToDevice).value();
  EXPECT_TRUE(convert.can_fail());
  EXPECT_EQ(convert.run(reinterpret_cast<const std::byte*>(host.data()),
                        reinterpret_cast<std::byte*>(device.data()), 4),
            2);
  EXPECT_EQ(device[1], -2147483647 - 1);
}

}  // namespace
}  // namespace spyre
