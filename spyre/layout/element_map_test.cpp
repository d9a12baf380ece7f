#include "spyre/layout/element_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "spyre/layout/test_layouts.h"

namespace spyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace test;  // NOLINT: test support of this layer

ElementMap map_of(const DeviceLayout& layout) {
  return ElementMap::of(layout).value();
}
ElementMap standard_map(const Ints& size, DataFormat format, ElementArrangement arrangement) {
  return map_of(DeviceLayout::standard(size, format).value().with_element_arrangement(arrangement));
}

TEST(ElementMap, ReadsAnOffsetAsRowTileAndLane) {
  const ElementMap map = map_of(DeviceLayout::standard(Ints{512, 240}, kDl16).value());
  EXPECT_EQ(map.find(475), 1 * 64 + 3 * 32768 + 43);
  EXPECT_EQ(map.find(240), 64);  // row 1, column 0: never column 240 of row 0
  EXPECT_EQ(map.find(512 * 240 - 1), 3 * 32768 + 511 * 64 + 47);
  EXPECT_EQ(map.find(512 * 240), std::nullopt);
  EXPECT_EQ(map.find(-1), std::nullopt);
}

TEST(ElementMap, SticksPastTheEndOfAShortRowArePadding) {
  const ElementMap map = map_of(DeviceLayout::raw({2, 5, 32}, {32, 7, 1}, DataFormat::IEEE_FP32));
  for (int64_t row = 0; row < 5; ++row) {
    for (int64_t column = 0; column < 7; ++column) {
      EXPECT_EQ(map.find(7 * row + column), 32 * row + column);
    }
  }
}

TEST(ElementMap, FindsTheOffsetOfASlice) {
  const ElementMap map = map_of(DeviceLayout::standard(Ints{1024, 256}, kDl16).value());
  EXPECT_EQ(map.device_offset(832).value(), 65728);
}

TEST(ElementMap, SparseLayoutsUseLaneZero) {
  const Ints size = {4, 3};
  const ElementMap map = map_of(DeviceLayout::ordered(size, Ints{3, 1}, kDl16, Ints{0, 1, -1}).value());
  EXPECT_EQ(map.find(2), 2 * 4 * 64);
  EXPECT_EQ(map.find(3), 64);
}

TEST(ElementMap, OneElementPerStickWhenTheStickRepeatsAnAxis) {
  const ElementMap map = map_of(DeviceLayout::raw({1, 60, 64}, {64, 1, 1}, kDl16));
  EXPECT_EQ(map.find(59), 59 * 64);
}

TEST(ElementMap, RefusesTwoAxesWithOneStride) {
  const auto map = ElementMap::of(DeviceLayout::raw({2, 3, 64}, {128, 128, 1}, kDl16));
  EXPECT_THAT(map.error().to_string(), HasSubstr("two axes step by 128 host elements"));
  EXPECT_THAT(map.error().message,
              HasSubstr("Invalid device sizes and stride map for host sizes and strides"));
}

TEST(ElementMap, RowsOfOneStickMayHaveEmptyTiles) {
  // Tiles lie outside the axis that is just outside the stick.
  const ElementMap rows = map_of(DeviceLayout::raw({2, 4, 32}, {32, 32, 1}, DataFormat::IEEE_FP32));
  EXPECT_EQ(rows.find(33), 32 + 1);
  EXPECT_EQ(rows.find(3 * 32), 3 * 32);
  EXPECT_FALSE(rows.find(4 * 32));
  const ElementMap planes = map_of(DeviceLayout::raw({3, 2, 5, 32}, {32, 32, 96, 1}, DataFormat::IEEE_FP32));
  EXPECT_EQ(planes.find(96 + 2 * 32 + 7), 2 * (2 * 5 * 32) + 32 + 7);
}

TEST(ElementMap, RefusesOffsetsBetweenElements) {
  const ElementMap map = map_of(DeviceLayout::raw({1, 64}, {128, 2}, kDl16));
  EXPECT_EQ(map.find(6), 3);
  EXPECT_THAT(map.device_offset(7).error().message, HasSubstr("Invalid device tensor storage offset"));
}

TEST(ElementMap, BroadcastAxesHaveCopies) {
  EXPECT_THAT(map_of(DeviceLayout::raw({1, 3, 64}, {64, 0, 1}, kDl16)).copies(), ElementsAre(0, 64, 128));
  EXPECT_THAT(map_of(DeviceLayout::raw({1, 64}, {64, 1}, kDl16)).copies(), ElementsAre(0));
}

TEST(ElementMap, WideningSpreadsGroupsOfFourOverAPairOfSticks) {
  const ElementMap map = standard_map({128}, DataFormat::IEEE_FP32, ElementArrangement::DL16_TO_FP32);
  const auto at = [](int64_t stick, int64_t lane) { return stick * 32 + lane; };
  EXPECT_EQ(map.find(0), at(0, 0));
  EXPECT_EQ(map.find(4), at(1, 0));
  EXPECT_EQ(map.find(8), at(0, 4));
  EXPECT_EQ(map.find(31), at(1, 15));
  EXPECT_EQ(map.find(63), at(1, 31));
  EXPECT_EQ(map.find(64), at(2, 0));
}

TEST(ElementMap, WideningFollowsTheFormulaInEveryRow) {
  const ElementMap map = standard_map({3, 128}, DataFormat::IEEE_FP32, ElementArrangement::DL16_TO_FP32);
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t col = 0; col < 128; ++col) {
      const int64_t p = col / 64, g = col % 64 / 8, s = col % 8 / 4, e = col % 4;
      EXPECT_EQ(map.find(row * 128 + col), (2 * p + s) * 3 * 32 + row * 32 + 4 * g + e);
    }
  }
}

TEST(ElementMap, NarrowingInterleavesTheHalvesOfAStick) {
  const ElementMap map = standard_map({128}, kDl16, ElementArrangement::FP32_TO_DL16);
  EXPECT_EQ(map.find(4), 8);
  EXPECT_EQ(map.find(31), 59);
  EXPECT_EQ(map.find(32), 4);
  EXPECT_EQ(map.find(60), 60);
  EXPECT_EQ(map.find(64 + 4), 64 + 8);
}

TEST(ElementMap, Fp8WeightsLieInSticksOfTwoBySixtyFour) {
  const int64_t K = 4, N = 192;
  const ElementMap map = standard_map({K, N}, DataFormat::SEN143_FP8, ElementArrangement::QFP8WT);
  for (int64_t k = 0; k < K; ++k) {
    for (int64_t n = 0; n < N; ++n) {
      EXPECT_EQ(map.find(k * N + n), (n / 64) * (K * 64) + (k / 2) * 128 + (n % 64) * 2 + k % 2);
    }
  }
}

TEST(ElementMap, RefusesArrangementsThatDoNotFitTheirLayout) {
  const auto refusal = [](const Ints& size, DataFormat format, ElementArrangement arrangement) {
    return ElementMap::of(DeviceLayout::standard(size, format).value().with_element_arrangement(arrangement))
        .error()
        .to_string();
  };
  EXPECT_THAT(refusal({4, 80}, DataFormat::IEEE_FP32, ElementArrangement::DL16_TO_FP32),
              HasSubstr("full sticks and an even stick count"));
  EXPECT_THAT(refusal({3, 64}, DataFormat::SEN143_FP8, ElementArrangement::QFP8WT), HasSubstr("even K"));
  EXPECT_THAT(refusal({4, 96}, DataFormat::SEN143_FP8, ElementArrangement::QFP8WT),
              HasSubstr("multiple of 64 for N, found K=4 N=96"));
  EXPECT_THAT(refusal({4, 64}, kDl16, ElementArrangement::QFP8WT), HasSubstr("8-bit matrix"));
  EXPECT_THAT(refusal({4, 128}, DataFormat::SEN143_FP8, ElementArrangement::QFP8CH),
              HasSubstr("order is not public"));
}

// --- layouts that somebody else wrote ----------------------------------------------------------------------

TEST(CheckHolds, EveryDefaultLayoutHoldsItsElementsAndNoMore) {
  for (const Ints& size : {Ints{}, Ints{1}, Ints{63}, Ints{64}, Ints{65}, Ints{512, 240}, Ints{5, 1},
                           Ints{1, 7, 3}, Ints{2, 3, 4, 65}}) {
    int64_t elements = 1;
    for (const int64_t n : size) elements *= n;
    const DeviceLayout layout = DeviceLayout::standard(size, kDl16).value();
    EXPECT_TRUE(check_holds(layout, elements).ok()) << layout.to_string();
    const ElementMap map = map_of(layout);
    for (int64_t more = elements; more < elements + 130; ++more) {
      EXPECT_EQ(check_holds(layout, more).ok(), map.find(more - 1).has_value()) << layout.to_string() << more;
    }
  }
}

TEST(CheckHolds, SaysWhatFindSaysOfEveryElement) {
  const std::vector<DeviceLayout> layouts = {
      DeviceLayout::raw({2, 64}, {64, 1}, kDl16),       DeviceLayout::raw({2, 64}, {65, 1}, kDl16),
      DeviceLayout::raw({2, 64}, {64, 2}, kDl16),       DeviceLayout::raw({2, 64}, {32, 1}, kDl16),
      DeviceLayout::raw({3, 64}, {1, -1}, kDl16),       DeviceLayout::raw({3, 2, 64}, {2, 1, -1}, kDl16),
      DeviceLayout::raw({3, 2, 64}, {0, 64, 1}, kDl16), DeviceLayout::raw({1, 64}, {-1, -1}, kDl16)};
  for (const DeviceLayout& layout : layouts) {
    const ElementMap map = map_of(layout);
    bool all = true;
    for (int64_t elements = 0; elements <= 200; ++elements) {
      all = all && (elements == 0 || map.find(elements - 1).has_value());
      EXPECT_EQ(check_holds(layout, elements).ok(), all) << layout.to_string() << " " << elements;
    }
  }
}

TEST(CheckHolds, RefusesWhatAFileMaySay) {
  const auto why = [](const DeviceLayout& layout, int64_t elements) {
    const Status status = check_holds(layout, elements);
    return status.ok() ? std::string("accepted") : status.error().to_string();
  };
  EXPECT_THAT(why(DeviceLayout::raw({0, 2, 64}, {64, 64, 1}, kDl16), 128), HasSubstr("an axis is empty"));
  EXPECT_THAT(why(DeviceLayout::raw(Ints(17, 1), Ints(17, -1), kDl16), 1),
              HasSubstr("last extent must be one stick"));
  Ints many(17, 1);
  many.back() = 64;
  EXPECT_THAT(why(DeviceLayout::raw(many, Ints(17, -1), kDl16), 1),
              HasSubstr("found 17 axes, allowed: at most 16"));
  EXPECT_THAT(why(DeviceLayout::raw({4, 64}, {int64_t{1} << 62, 1}, kDl16), 64), HasSubstr("too large"));
  EXPECT_THAT(why(DeviceLayout::raw({4, 64}, {-2, 1}, kDl16), 64), HasSubstr("below -1"));
  EXPECT_THAT(why(DeviceLayout::raw({int64_t{1} << 60, 64}, {64, 1}, kDl16), 64),
              HasSubstr("not a size that memory can have"));
  EXPECT_THAT(why(DeviceLayout::raw({2, 2, 64}, {128, 128, 1}, kDl16), 64),
              HasSubstr("two axes step by 128"));
  EXPECT_THAT(why(DeviceLayout::raw({1, 64}, {64, 1}, kDl16), 65),
              HasSubstr("no place for element 64 of 65"));
}

}  // namespace
}  // namespace spyre
