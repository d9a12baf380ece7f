#include <gtest/gtest.h>

#include "spyre/arch/data_format.h"
#include "spyre/arch/machine.h"

namespace spyre {
namespace {

TEST(DataFormat, SticksHoldAWholeNumberOfElementsOrNone) {
  EXPECT_EQ(elems_per_stick(DataFormat::SEN169_FP16), 64);
  EXPECT_EQ(elems_per_stick(DataFormat::IEEE_FP32), 32);
  EXPECT_EQ(elems_per_stick(DataFormat::IEEE_INT32), 32);
  EXPECT_EQ(elems_per_stick(DataFormat::SEN143_FP8), 128);
  EXPECT_EQ(elems_per_stick(DataFormat::SENINT4), 256);
  EXPECT_EQ(elems_per_stick(DataFormat::SENUINT2), 512);
  EXPECT_EQ(elems_per_stick(DataFormat::SEN153_FP9), 0);
  EXPECT_EQ(elems_per_stick(DataFormat::INVALID), 0);
}

TEST(DataFormat, NamesReadBack) {
  for (int i = 0; i < kDataFormatCount; ++i) {
    const auto format = static_cast<DataFormat>(i);
    EXPECT_EQ(data_format_from_name(to_string(format)), format);
  }
  EXPECT_EQ(data_format_from_name("FP17"), std::nullopt);
  EXPECT_EQ(element_arrangement_from_name("QFP8WT"), ElementArrangement::QFP8WT);
}

TEST(Machine, SpyreCardHas128GiBAndProgramsInTheLastSegment) {
  EXPECT_EQ(spyre_card().address_space(), gibibytes(128));
  EXPECT_EQ(spyre_card().program_base().count(), 0x1C'0000'0000);
}

}  // namespace
}  // namespace spyre
