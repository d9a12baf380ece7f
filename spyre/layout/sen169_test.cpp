#include "spyre/layout/sen169.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "spyre/layout/small_float.h"
#include "spyre/layout/test_layouts.h"

namespace spyre {
namespace {

using namespace test;  // NOLINT: test support of this layer

// The judge: the value of a code by its definition. 0x7FFF gets the value it would have if it were a number.
double value_of(int code) {
  const int magnitude = code & 0x7FFF;
  const double value =
      magnitude == 0 ? 0 : std::ldexp(1 + (magnitude & 0x1FF) / 512.0, (magnitude >> 9) - 31);
  return (code & 0x8000) != 0 ? -value : value;
}

uint32_t bits_of_fp32(float value) {
  return std::bit_cast<uint32_t>(value);
}

struct WorkedValue {
  uint16_t fp16;
  uint16_t sen169;
  uint16_t back;
};

TEST(Sen169, WorkedValuesOfTheVendorRule) {
  constexpr WorkedValue kTable[] = {
      {0x3C00, 0x3E00, 0x3C00},  // 1.0
      {0xBC00, 0xBE00, 0xBC00},  // -1.0
      {0x3800, 0x3C00, 0x3800},  // 0.5
      {0x4000, 0x4000, 0x4000},  // 2.0
      {0x3E00, 0x3F00, 0x3E00},  // 1.5
      {0x5640, 0x4B20, 0x5640},  // 100.0
      {0x3555, 0x3AAB, 0x3556},  // 0.33325 -> 0.33350
      {0x6401, 0x5201, 0x6402},  // 1025 -> 1026
      {0x7BFF, 0x5DFF, 0x7BFE},  // 65504 -> 65472
      {0x0400, 0x2200, 0x0400},  // 2^-14
      {0x0200, 0x2000, 0x0100},  // 2^-15 -> 2^-16
      {0x0001, 0x0E00, 0x0000},  // 2^-24 -> 0
      {0x0000, 0x0000, 0x0000},  // zeros keep their sign
      {0x8000, 0x8000, 0x8000},  //
      {0x7C00, 0x7E00, 0x7C00},  // Inf
      {0xFC00, 0xFE00, 0xFC00},  // -Inf
      {0x7E00, 0x7F00, 0x7E00},  // the quiet NaN
  };
  for (const auto& value : kTable) {
    EXPECT_EQ(sen169_from_fp16(value.fp16, kVendor), value.sen169) << std::hex << value.fp16;
    EXPECT_EQ(fp16_from_sen169(value.sen169, kVendor), value.back) << std::hex << value.sen169;
  }
}

TEST(Sen169, PublishedConstants) {
  EXPECT_EQ(fp32_from_sen169(kSen169MaxFinite), 8573157376.0f);
  EXPECT_EQ(double{fp32_from_sen169(kSen169MinPositive)}, 4.665707820095122e-10);
  EXPECT_EQ(fp32_from_sen169(kSen169One + 1) - 1.0f, std::ldexp(1.0f, -9));  // spacing at 1
  EXPECT_EQ(sen169_from_fp32(1.0f / 3), 0x3AAB);
  EXPECT_EQ(fp32_from_sen169(0x3AAB), 0.33349609375f);
  EXPECT_EQ(fp32_from_sen169(0x7E00), 4294967296.0f);  // a vendor infinity reads as a number
}

TEST(Sen169, EveryCodeReadsAsItsDefinitionInFp32) {
  for (int code = 0; code < 0x10000; ++code) {
    const float value = fp32_from_sen169(static_cast<uint16_t>(code));
    if ((code & 0x7FFF) == 0x7FFF) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(std::signbit(value), code == 0xFFFF);
    } else {
      ASSERT_EQ(value, value_of(code)) << std::hex << code;
      ASSERT_EQ(std::signbit(value), code >= 0x8000) << std::hex << code;
      ASSERT_EQ(sen169_from_fp32(value), code);  // and nothing is lost on the way back
    }
  }
}

TEST(Sen169, Fp32TiesGoUpInMagnitudeAndTheRestToTheNearest) {
  for (int code = 1; code < 0x7FFF; ++code) {
    const auto middle = static_cast<float>((value_of(code) + value_of(code + 1)) / 2);
    ASSERT_EQ(sen169_from_fp32(middle), code + 1) << std::hex << code;
    ASSERT_EQ(sen169_from_fp32(std::nextafter(middle, 0.0f)), code) << std::hex << code;
    ASSERT_EQ(sen169_from_fp32(-middle), 0x8000 | (code + 1)) << std::hex << code;
  }
}

TEST(Sen169, Fp32BelowTheSmallestBinadeIsSignedZero) {
  // Exponent 0 with fraction 0 is the code of zero, so 2^-31 has no code of its own and falls to zero.
  const float edge = std::ldexp(1.0f, -31);
  EXPECT_EQ(sen169_from_fp32(edge), 0x0000);
  EXPECT_EQ(sen169_from_fp32(-edge), 0x8000);
  const float smallest_kept = std::ldexp(1.0f + 1.0f / 1024, -31);
  EXPECT_EQ(sen169_from_fp32(smallest_kept), 0x0001);
  EXPECT_EQ(sen169_from_fp32(std::nextafter(smallest_kept, 0.0f)), 0x0000);
  EXPECT_EQ(sen169_from_fp32(std::nextafter(edge, 0.0f)), 0x0000);  // carries into 2^-31
  EXPECT_EQ(sen169_from_fp32(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(sen169_from_fp32(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(sen169_from_fp32(-0.0f), 0x8000);
}

TEST(Sen169, Fp32BeyondTheRangeAndNanShareOneCode) {
  EXPECT_EQ(sen169_from_fp32(INFINITY), 0x7FFF);
  EXPECT_EQ(sen169_from_fp32(-INFINITY), 0xFFFF);
  EXPECT_EQ(sen169_from_fp32(kNan), 0x7FFF);
  EXPECT_EQ(sen169_from_fp32(std::bit_cast<float>(0xFFFF'FFFF)), 0xFFFF);
  EXPECT_EQ(sen169_from_fp32(std::numeric_limits<float>::max()), 0x7FFF);
  EXPECT_EQ(sen169_from_fp32(8573157376.0f), 0x7FFE);
}

TEST(Sen169, WhatTheHostStagesSaturatesAndOnlyNanIsNan) {
  for (const float beyond : {8581545984.0f, 1e10f, std::numeric_limits<float>::max(), INFINITY}) {
    EXPECT_EQ(saturated_sen169_from_fp32(beyond), kSen169MaxFinite) << beyond;
    EXPECT_EQ(saturated_sen169_from_fp32(-beyond), 0x8000 | kSen169MaxFinite) << beyond;
  }
  EXPECT_EQ(saturated_sen169_from_fp32(65504.0f), 0x5DFF);  // finfo(float16).max, half way to 65536
  EXPECT_EQ(saturated_sen169_from_fp32(-65504.0f), 0xDDFF);
  EXPECT_EQ(saturated_sen169_from_fp32(65505.0f), 0x5E00);
  EXPECT_EQ(saturated_sen169_from_fp32(kNan), 0x7FFF);
  EXPECT_EQ(saturated_sen169_from_fp32(std::bit_cast<float>(0xFFC0'0000)), 0xFFFF);
  for (int code = 0; code < 0x7FFF; ++code) {
    ASSERT_EQ(saturated_sen169_from_fp32(static_cast<float>(value_of(code))), code) << std::hex << code;
  }
}

TEST(Sen169, RoundTripOfNormalsIsExactForEvenFractions) {
  int normals = 0, exact = 0;
  double worst = 0;
  for (int code = 0; code < 0x10000; ++code) {
    const int exponent = (code >> 10) & 31;
    if (exponent == 0 || exponent == 31) continue;
    const auto fp16 = static_cast<uint16_t>(code);
    const uint16_t back = fp16_from_sen169(sen169_from_fp16(fp16, kVendor), kVendor);
    ASSERT_EQ(fp16_from_sen169(sen169_from_fp16(fp16, kPublished), kPublished), back);
    const double value = fp32_from_fp16(fp16);
    ++normals;
    exact += back == fp16;
    ASSERT_EQ(back == fp16, code % 2 == 0);
    worst = std::max(worst, std::abs(fp32_from_fp16(back) - value) / std::abs(value));
  }
  EXPECT_EQ(normals, 61440);
  EXPECT_EQ(exact, 30720);
  EXPECT_NEAR(worst, 9.76e-4, 1e-6);
  EXPECT_LT(worst, std::ldexp(1.0, -10));
}

TEST(Sen169, Fp16SubnormalsEnterExactlyAndTheVendorReturnsHalf) {
  int halved = 0;
  for (int sign : {0, 0x8000}) {
    for (int fraction = 1; fraction < 0x400; ++fraction) {
      const auto fp16 = static_cast<uint16_t>(sign | fraction);
      for (const Sen169Policy policy : {kVendor, kPublished}) {
        ASSERT_EQ(value_of(sen169_from_fp16(fp16, policy)), fp32_from_fp16(fp16));
      }
      halved += fp16_from_sen169(sen169_from_fp16(fp16, kVendor), kVendor) == (sign | fraction / 2);
      ASSERT_EQ(fp16_from_sen169(sen169_from_fp16(fp16, kPublished), kPublished), fp16);
    }
  }
  EXPECT_EQ(halved, 2046);
}

TEST(Sen169, VendorNansKeepNineBitsOfPayload) {
  int lost = 0;
  for (int payload = 1; payload < 0x400; ++payload) {
    const auto nan = static_cast<uint16_t>(0x7C00 | payload);
    const uint16_t code = sen169_from_fp16(nan, kVendor);
    ASSERT_EQ(code, 0x7E00 | payload >> 1);
    const uint16_t back = fp16_from_sen169(code, kVendor);
    const bool becomes_infinity = payload == 1 || payload == 0x3FE || payload == 0x3FF;
    ASSERT_EQ(back, becomes_infinity ? 0x7C00 : 0x7C00 | (payload & 0x3FE)) << std::hex << payload;
    lost += becomes_infinity;
  }
  EXPECT_EQ(lost, 3);
}

TEST(Sen169, VendorReadsEveryCodeByItsRule) {
  for (int code = 0; code < 0x8000; ++code) {
    const int exponent = code >> 9, fraction = code & 0x1FF;
    const uint16_t got = fp16_from_sen169(static_cast<uint16_t>(code), kVendor);
    ASSERT_EQ(fp16_from_sen169(static_cast<uint16_t>(code | 0x8000), kVendor), got | 0x8000)
        << std::hex << code;
    if (exponent == 63) {
      ASSERT_EQ(got, fraction == 0 || fraction == 0x1FF ? 0x7C00 : 0x7C00 | fraction << 1)
          << std::hex << code;
    } else if (exponent >= 47) {
      ASSERT_EQ(got, 0x7C00) << std::hex << code;
    } else if (exponent >= 17) {
      ASSERT_EQ(fp32_from_fp16(got), value_of(code)) << std::hex << code;
    } else {
      ASSERT_EQ(got, std::floor(value_of(code) * std::ldexp(1.0, 23)))
          << std::hex << code;  // halves of 2^-24
    }
  }
}

TEST(Sen169, PublishedFp16AgreesWithTheDetourThroughFp32) {
  for (int code = 0; code < 0x7C00 - 1; ++code) {
    const auto fp16 = static_cast<uint16_t>(code);
    ASSERT_EQ(sen169_from_fp16(fp16, kPublished), sen169_from_fp32(fp32_from_fp16(fp16))) << std::hex << code;
  }
  EXPECT_EQ(sen169_from_fp16(0x7BFF, kPublished), 0x5DFF);  // 65504, half way to 65536: finite stays finite
  EXPECT_EQ(sen169_from_fp16(0x7C00, kPublished), 0x7FFE);
  EXPECT_EQ(sen169_from_fp16(0xFC00, kPublished), 0xFFFE);
  EXPECT_EQ(sen169_from_fp16(0x7C01, kPublished), 0x7FFF);
  EXPECT_EQ(sen169_from_fp16(0xFE01, kPublished), 0xFFFF);
  EXPECT_EQ(fp16_from_sen169(0x5E00, kPublished), 0x7C00);
  EXPECT_EQ(fp16_from_sen169(0x7FFE, kPublished), 0x7C00);
  EXPECT_EQ(fp16_from_sen169(0x7FFF, kPublished), 0x7E00);
  EXPECT_EQ(fp16_from_sen169(0xFFFF, kPublished), 0xFE00);
  EXPECT_EQ(fp16_from_sen169(0x2000, kPublished), 0x0200);  // 2^-15 survives
  EXPECT_EQ(fp16_from_sen169(0x0C00, kPublished), 0x0000);  // 2^-25 ties to even
  EXPECT_EQ(fp16_from_sen169(0x0C01, kPublished), 0x0001);
  EXPECT_EQ(fp16_from_sen169(0x0001, kPublished), 0x0000);
  int same = 0;
  for (int code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<uint16_t>(code);
    same += sen169_from_fp16(bits, kPublished) == sen169_from_fp16(bits, kVendor);
  }
  // The policies part only at the infinities and the NaNs, except the two NaNs per sign whose payload is full.
  EXPECT_EQ(0x10000 - same, 2 * (1 + 1023 - 2));
}

TEST(Sen169, Bf16EntersExactlyWithinTheRange) {
  EXPECT_EQ(sen169_from_bf16(0x3F80), kSen169One);
  EXPECT_EQ(sen169_from_bf16(0x8000), 0x8000);
  EXPECT_EQ(sen169_from_bf16(0x7FC0), 0x7FFF);
  EXPECT_EQ(sen169_from_bf16(0xFF80), 0xFFFE);      // infinity
  EXPECT_EQ(sen169_from_bf16(0xFF7F), 0xFFFE);      // finfo.min
  for (int code = 0x3001; code < 0x5000; ++code) {  // 2^-31 * (1 + 1/128) up to 2^33
    ASSERT_EQ(value_of(sen169_from_bf16(static_cast<uint16_t>(code))),
              fp32_from_bf16(static_cast<uint16_t>(code)));
    ASSERT_EQ(bf16_from_sen169(sen169_from_bf16(static_cast<uint16_t>(code))), code);
  }
  EXPECT_EQ(sen169_from_bf16(0x5000), 0x7FFE);
  EXPECT_EQ(sen169_from_bf16(0x3000), 0x0000);  // 2^-31
}

TEST(Sen169, Bf16LeavesToNearestEven) {
  EXPECT_EQ(bf16_from_sen169(0x3E02), 0x3F80);  // 1 + 2/512: half way, down to even
  EXPECT_EQ(bf16_from_sen169(0x3E06), 0x3F82);  // 1 + 6/512: half way, up to even
  EXPECT_EQ(bf16_from_sen169(0x3E03), 0x3F81);
  EXPECT_EQ(bf16_from_sen169(0x7FFE), 0x5000);  // carries into the next binade
  EXPECT_EQ(bf16_from_sen169(0x7FFF), 0x7FC0);
  EXPECT_EQ(bf16_from_sen169(0xFFFF), 0xFFC0);
  EXPECT_EQ(bf16_from_sen169(0x8000), 0x8000);
}

TEST(Sen169, TruthIsOneAndAnythingButZeroIsTrue) {
  EXPECT_EQ(sen169_from_bool(true), 0x3E00);
  EXPECT_EQ(sen169_from_bool(false), 0x0000);
  EXPECT_FALSE(bool_from_sen169(0x0000));
  EXPECT_FALSE(bool_from_sen169(0x8000));
  EXPECT_TRUE(bool_from_sen169(0x0001));
  EXPECT_TRUE(bool_from_sen169(0x7FFF));
}

TEST(Sen169, IntegersAreExactUpTo1024AndRoundOnceBeyond) {
  for (int64_t value = -1024; value <= 1024; ++value) {
    ASSERT_EQ(value_of(sen169_from_int64(value)), static_cast<double>(value));
  }
  EXPECT_EQ(value_of(sen169_from_int64(1025)), 1026);
  EXPECT_EQ(value_of(sen169_from_int64(-1025)), -1026);
  // One less than a tie: rounding to fp32 first would make it a tie and send it up.
  const int64_t tie = (int64_t{1} << 32) + (int64_t{1} << 22);
  EXPECT_EQ(value_of(sen169_from_int64(tie - 1)), std::ldexp(1.0, 32));
  EXPECT_EQ(value_of(sen169_from_int64(tie)), std::ldexp(1.0, 32) + std::ldexp(1.0, 23));
  EXPECT_EQ(sen169_from_int64(std::numeric_limits<int64_t>::max()), 0x7FFE);
  EXPECT_EQ(sen169_from_int64(std::numeric_limits<int64_t>::min()), 0xFFFE);
  EXPECT_EQ(bits_of_fp32(fp32_from_sen169(sen169_from_int64(0))), 0u);
}

}  // namespace
}  // namespace spyre
