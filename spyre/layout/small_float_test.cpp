#include "spyre/layout/small_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "spyre/layout/test_layouts.h"

namespace spyre {
namespace {

using namespace test;  // NOLINT: test support of this layer

// The judge: a value by its definition, computed with ldexp, and rounding by looking at both neighbours.
double value_of(uint32_t magnitude, int fraction_bits, int bias) {
  const int exponent = static_cast<int>(magnitude >> fraction_bits);
  const double fraction = std::ldexp(magnitude & ((1u << fraction_bits) - 1), -fraction_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
}

struct Format {
  std::string name;
  int fraction_bits;
  int bias;
  uint32_t largest;   // magnitude code of the largest finite value
  uint32_t overflow;  // what lies above it becomes
  uint32_t (*encode)(float);
  float (*decode)(uint32_t);
};

const Format kFormats[] = {
    {"fp16", 10, 15, 0x7BFF, 0x7C00, [](float v) -> uint32_t { return fp16_from_fp32(v); },
     [](uint32_t c) { return fp32_from_fp16(static_cast<uint16_t>(c)); }},
    {"bf16", 7, 127, 0x7F7F, 0x7F80, [](float v) -> uint32_t { return bf16_from_fp32(v); },
     [](uint32_t c) { return fp32_from_bf16(static_cast<uint16_t>(c)); }},
    {"e4m3fn", 3, 7, 0x7E, 0x7E, [](float v) -> uint32_t { return e4m3fn_from_fp32(v); },
     [](uint32_t c) { return fp32_from_e4m3fn(static_cast<uint8_t>(c)); }},
    {"e5m2fnuz", 2, 16, 0x7F, 0x80, [](float v) -> uint32_t { return e5m2fnuz_from_fp32(v); },
     [](uint32_t c) { return fp32_from_e5m2fnuz(static_cast<uint8_t>(c)); }},
};

TEST(SmallFloat, EveryFiniteCodeHasTheValueOfItsDefinitionAndEncodesBack) {
  for (const Format& format : kFormats) {
    for (uint32_t code = 0; code <= format.largest; ++code) {
      ASSERT_EQ(format.decode(code), value_of(code, format.fraction_bits, format.bias))
          << format.name << code;
      ASSERT_EQ(format.encode(format.decode(code)), code) << format.name;
    }
  }
}

TEST(SmallFloat, MidpointsGoToTheEvenNeighbourAndTheirNeighboursToTheNearest) {
  for (const Format& format : kFormats) {
    for (uint32_t code = 0; code <= format.largest; ++code) {
      const double low = value_of(code, format.fraction_bits, format.bias);
      const double high = value_of(code + 1, format.fraction_bits, format.bias);
      const auto middle = static_cast<float>((low + high) / 2);
      const uint32_t above = code == format.largest ? format.overflow : code + 1;
      const uint32_t even = code % 2 == 0 ? code : above;
      ASSERT_EQ(format.encode(middle), even) << format.name << " " << code;
      ASSERT_EQ(format.encode(std::nextafter(middle, 0.0f)), code) << format.name << " " << code;
      ASSERT_EQ(format.encode(std::nextafter(middle, INFINITY)), above) << format.name << " " << code;
    }
  }
}

TEST(SmallFloat, SignsZerosInfinitiesAndNans) {
  EXPECT_EQ(fp16_from_fp32(-0.0f), 0x8000);
  EXPECT_EQ(fp16_from_fp32(-1.0f), 0xBC00);
  EXPECT_EQ(fp16_from_fp32(-INFINITY), 0xFC00);
  EXPECT_EQ(fp16_from_fp32(kNan), 0x7E00);
  EXPECT_EQ(fp32_from_fp16(0xFC00), -INFINITY);
  EXPECT_TRUE(std::isnan(fp32_from_fp16(0x7C01)));

  EXPECT_EQ(bf16_from_fp32(-1.0f), 0xBF80);
  EXPECT_EQ(bf16_from_fp32(INFINITY), 0x7F80);
  EXPECT_EQ(bf16_from_fp32(std::bit_cast<float>(0xFF80'0001)), 0xFFC0);  // not rounded down to infinity
  EXPECT_TRUE(std::isnan(fp32_from_bf16(0x7F81)));

  EXPECT_EQ(e4m3fn_from_fp32(-0.0f), 0x80);
  EXPECT_EQ(e4m3fn_from_fp32(-448.0f), 0xFE);
  EXPECT_EQ(e4m3fn_from_fp32(INFINITY), 0x7E);  // saturates
  EXPECT_EQ(e4m3fn_from_fp32(-1e10f), 0xFE);
  EXPECT_EQ(e4m3fn_from_fp32(kNan), 0x7F);
  EXPECT_EQ(e4m3fn_from_fp32(-kNan), 0xFF);
  EXPECT_TRUE(std::isnan(fp32_from_e4m3fn(0xFF)));

  EXPECT_EQ(e5m2fnuz_from_fp32(-0.0f), 0x00);    // there is no negative zero
  EXPECT_EQ(e5m2fnuz_from_fp32(-1e-20f), 0x00);  // nor does one arise by rounding
  EXPECT_EQ(e5m2fnuz_from_fp32(-57344.0f), 0xFF);
  EXPECT_EQ(e5m2fnuz_from_fp32(-INFINITY), 0x80);
  EXPECT_EQ(e5m2fnuz_from_fp32(kNan), 0x80);
  EXPECT_TRUE(std::isnan(fp32_from_e5m2fnuz(0x80)));
  EXPECT_EQ(fp32_from_e5m2fnuz(0xC0), -1.0f);
}

}  // namespace
}  // namespace spyre
