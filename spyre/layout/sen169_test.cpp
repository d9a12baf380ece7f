#include "spyre/layout/sen169.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "spyre/layout/small_float.h"

namespace spyre {
namespace {

constexpr auto kVendor = Sen169Policy::kVendor;
constexpr auto kPublished = Sen169Policy::kPublished;

struct WorkedValue {
  uint16_t fp16;
  uint16_t sen169;
  uint16_t back;
};

// The table of worked values for the staging converter.
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
      {0x0200, 0x2000, 0x0100},  // 2^-15 comes back as 2^-16
      {0x0001, 0x0E00, 0x0000},  // 2^-24
      {0x0000, 0x0000, 0x0000}, {0x8000, 0x8000, 0x8000},
  };
  for (const auto& value : kTable) {
    EXPECT_EQ(sen169_from_fp16(value.fp16, kVendor), value.sen169) << std::hex << value.fp16;
    EXPECT_EQ(fp16_from_sen169(value.sen169, kVendor), value.back) << std::hex << value.sen169;
  }
}

}  // namespace
}  // namespace spyre
