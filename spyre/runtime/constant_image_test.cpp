#include "spyre/runtime/constant_image.h"

#include <gmock/gmock.h>

#include <cstring>

#include "spyre/layout/sen169.h"

namespace spyre {
namespace {

using testing::HasSubstr;

/// A scalar in one stick.
program::LaunchArg scalar(double value) {
  program::LaunchArg arg;
  arg.arg_index = 2;
  arg.role = "constant";
  arg.dtype = "float16";
  arg.fill = Fill{.start = value};
  arg.device_size = {1, 64};
  arg.stride_map = {-1, -1};
  arg.device_format = DataFormat::SEN169_FP16;
  return arg;
}

template <typename T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST(ConstantImage, AScalarIsTheFirstLaneOfItsStick) {
  const std::vector<uint16_t> lanes = as<uint16_t>(constant_image(scalar(1.0)).value());
  ASSERT_EQ(lanes.size(), 64);
  EXPECT_EQ(lanes[0], kSen169One);
  EXPECT_EQ(lanes[1], 0);
}

TEST(ConstantImage, ARampLiesAsItsLayoutSays) {
  program::LaunchArg arg = scalar(0);
  arg.dtype = "int32";
  arg.shape = {int64_t{40}};
  arg.fill = Fill{.start = 7, .step = 2};
  arg.device_size = {2, 32};
  arg.stride_map = {32, 1};
  arg.device_format = DataFormat::IEEE_INT32;
  const std::vector<int32_t> values = as<int32_t>(constant_image(arg).value());
  ASSERT_EQ(values.size(), 64);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], 7 + 2 * i);
  for (size_t i = 40; i < 64; ++i) EXPECT_EQ(values[i], 0) << "padding";
}

TEST(ConstantImage, WhatNoCardCouldReadIsRefused) {
  const auto refusal = [](const program::LaunchArg& arg) { return constant_image(arg).error().message; };
  program::LaunchArg arg = scalar(1);
  arg.dtype = "float64";
  EXPECT_THAT(refusal(arg), HasSubstr("constant 2: found dtype 'float64'"));
  arg = scalar(1);
  arg.device_size.clear();
  EXPECT_THAT(refusal(arg), HasSubstr("no layout"));
  arg = scalar(1);
  arg.shape = {std::string("s0")};
  EXPECT_THAT(refusal(arg), HasSubstr("the extent s0"));
  arg = scalar(1);
  arg.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(refusal(arg), HasSubstr("268435456 bytes at most"));
  arg = scalar(1);
  arg.device_size = {int64_t{1} << 30, 64};
  EXPECT_THAT(refusal(arg), HasSubstr("268435456 at most"));
}

}  // namespace
}  // namespace spyre
