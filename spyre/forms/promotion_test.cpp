#include "spyre/forms/promotion.h"

#include <gtest/gtest.h>

// Every pair of types is compared with torch.result_type in tests/e2e/test_promotion.py; here is why.

namespace spyre::forms {
namespace {

using Category = Promoted::Category;

HostType of(std::initializer_list<Promoted> operands, HostType default_float = HostType::kFloat32) {
  return promote(std::vector<Promoted>(operands), default_float).value();
}

constexpr Promoted kFloat{Category::kNumber, std::nullopt, Number::Kind::kFloat};
constexpr Promoted kInt{Category::kNumber, std::nullopt, Number::Kind::kInt};

TEST(Promotion, NumbersKeepTheTypeOfTheirKind) {
  EXPECT_EQ(of({{Category::kDimensioned, HostType::kFloat16}, kFloat}), HostType::kFloat16);
  EXPECT_EQ(of({{Category::kDimensioned, HostType::kInt32}, kInt}), HostType::kInt32);
}

TEST(Promotion, AFloatAmongIntegersIsTheDefaultOne) {
  EXPECT_EQ(of({{Category::kDimensioned, HostType::kInt32}, kFloat}), HostType::kFloat32);
  EXPECT_EQ(of({{Category::kDimensioned, HostType::kInt32}, kFloat}, HostType::kFloat16), HostType::kFloat16);
}

TEST(Promotion, TensorsWithDimensionsComeBeforeThoseWithout) {
  EXPECT_EQ(
      of({{Category::kDimensioned, HostType::kFloat16}, {Category::kZeroDimensional, HostType::kFloat32}}),
      HostType::kFloat16);
  EXPECT_EQ(
      of({{Category::kDimensioned, HostType::kInt64}, {Category::kZeroDimensional, HostType::kFloat16}}),
      HostType::kFloat16);
}

TEST(Promotion, TwoHalvesMeetInFloat32) {
  EXPECT_EQ(promote(HostType::kFloat16, HostType::kBFloat16).value(), HostType::kFloat32);
  EXPECT_EQ(promote(HostType::kInt8, HostType::kUInt8).value(), HostType::kInt16);
}

TEST(Promotion, EightBitFloatsMeetNothing) {
  EXPECT_EQ(promote(HostType::kFloat8E4M3FN, HostType::kFloat32).error().message,
            "PyTorch has no common type for float8_e4m3fn and float32");
  EXPECT_TRUE(promote(HostType::kFloat8E4M3FN, HostType::kFloat8E4M3FN).ok());
}

}  // namespace
}  // namespace spyre::forms
