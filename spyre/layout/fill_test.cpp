#include "spyre/layout/fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "spyre/layout/test_layouts.h"

namespace spyre {
namespace {

using namespace test;  // NOLINT: test support of this layer

constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST(Fill, EqualMeansThatNoProgramCanTellThemApart) {
  EXPECT_EQ((Fill{.start = kNan}), (Fill{.start = -kNan}));
  EXPECT_NE((Fill{.start = kNan}), Fill{});
  EXPECT_NE((Fill{.start = 0.0}), (Fill{.start = -0.0}));
  EXPECT_NE((Fill{.start = kInf}), (Fill{.start = -kInf}));
}

TEST(Fill, ARampStartsAgainWithEveryRow) {
  EXPECT_EQ(as<int32_t>(filled_elements({.start = 5, .step = -2}, HostType::kInt32, 6, 3)),
            (std::vector<int32_t>{5, 3, 1, 5, 3, 1}));
  EXPECT_EQ(as<float>(filled_elements({.start = 0.5, .step = 1}, HostType::kFloat32, 2, 2)),
            (std::vector<float>{0.5, 1.5}));
}

TEST(Fill, EveryTypeHoldsWhatItCan) {
  EXPECT_EQ(as<uint16_t>(filled_elements({.start = 1.5}, HostType::kFloat16, 1, 1)).front(), 0x3E00);
  EXPECT_EQ(as<uint16_t>(filled_elements({.start = -1.5}, HostType::kBFloat16, 1, 1)).front(), 0xBFC0);
  EXPECT_TRUE(std::signbit(as<float>(filled_elements({.start = -0.0}, HostType::kFloat32, 1, 1)).front()));
  EXPECT_EQ(as<int64_t>(filled_elements({.start = 1e300}, HostType::kInt64, 1, 1)).front(), INT64_MAX);
  EXPECT_EQ(as<int64_t>(filled_elements({.start = -kInf}, HostType::kInt64, 1, 1)).front(), INT64_MIN);
  EXPECT_EQ(as<int8_t>(filled_elements({.start = kNan}, HostType::kInt8, 1, 1)).front(), 0);
  EXPECT_EQ(as<uint8_t>(filled_elements({.start = -3}, HostType::kUInt8, 1, 1)).front(), 0);
  EXPECT_EQ(as<uint8_t>(filled_elements({.start = kNan}, HostType::kBool, 1, 1)).front(), 1);
}

}  // namespace
}  // namespace spyre
