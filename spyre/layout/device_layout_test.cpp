#include "spyre/layout/device_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

#include "spyre/base/json.h"
#include "spyre/layout/test_layouts.h"

namespace spyre {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace test;  // NOLINT: test support of this layer

DeviceLayout ordered(const Ints& size, const Ints& order) {
  return DeviceLayout::ordered(size, contiguous_strides(size), kDl16, order).value();
}

struct Example {
  Ints host, order, device_size, stride_map;
  int64_t bytes;
};

TEST(DeviceLayout, FollowsTheWorkedExamples) {
  const Example examples[] = {
      {{}, {}, {1, 64}, {-1, -1}, 128},
      {{1}, {}, {1, 64}, {-1, -1}, 128},
      {{60}, {}, {1, 64}, {64, 1}, 128},
      {{64}, {}, {1, 64}, {64, 1}, 128},
      {{120}, {}, {2, 64}, {64, 1}, 256},
      {{128}, {}, {2, 64}, {64, 1}, 256},
      {{512, 240}, {}, {4, 512, 64}, {64, 240, 1}, 262144},
      {{1024, 256}, {}, {4, 1024, 64}, {64, 256, 1}, 524288},
      {{4, 128}, {}, {2, 4, 64}, {64, 128, 1}, 1024},
      {{512, 1}, {}, {1, 512, 64}, {-1, 1, -1}, 65536},
      {{1, 512}, {}, {8, 1, 64}, {64, -1, 1}, 1024},
      {{50, 10, 200}, {}, {10, 4, 50, 64}, {200, 64, 2000, 1}, 256000},
      {{5, 100, 150}, {}, {100, 3, 5, 64}, {150, 64, 15000, 1}, 192000},
      {{5, 100, 150}, {1, 0, 2}, {5, 3, 100, 64}, {15000, 64, 150, 1}, 192000},
      {{512, 8, 256}, {}, {8, 4, 512, 64}, {256, 64, 2048, 1}, 2097152},
      {{512, 8, 256}, {0, 2, 1}, {256, 1, 512, 64}, {1, 16384, 2048, 256}, 16777216},
      {{512, 8, 256}, {1, 2, 0}, {256, 8, 8, 64}, {1, 131072, 256, 2048}, 2097152},
      {{512, 8, 256}, {2, 0, 1}, {512, 1, 256, 64}, {2048, 16384, 1, 256}, 16777216},
      {{512, 8, 256}, {2, 1, 0}, {8, 8, 256, 64}, {256, 131072, 1, 2048}, 2097152},
      {{512, 256}, {1, 0}, {8, 256, 64}, {16384, 1, 256}, 262144},
      {{512, 256}, {0, 1, -1}, {256, 1, 512, 64}, {1, -1, 256, -1}, 16777216},
      {{512, 256, 1}, {0, 1, 2}, {256, 1, 512, 64}, {1, -1, 256, -1}, 16777216},
      {{512, 1, 256}, {}, {1, 4, 512, 64}, {-1, 64, 256, 1}, 262144},
      {{2, 3, 4, 100}, {}, {3, 4, 2, 2, 64}, {400, 100, 64, 1200, 1}, 6144},
      {{2, 8, 512, 128}, {}, {8, 512, 2, 2, 64}, {65536, 128, 64, 524288, 1}, 2097152},
      {{2, 3, 4, 5, 70}, {}, {3, 4, 5, 2, 2, 64}, {1400, 350, 70, 64, 4200, 1}, 30720},
  };
  for (const Example& example : examples) {
    const DeviceLayout layout =
        example.order.empty() ? standard(example.host) : ordered(example.host, example.order);
    EXPECT_EQ(layout.device_size, example.device_size) << testing::PrintToString(example.host);
    EXPECT_EQ(layout.stride_map, example.stride_map) << testing::PrintToString(example.host);
    EXPECT_EQ(layout.byte_size().value(), Bytes(example.bytes)) << testing::PrintToString(example.host);
    EXPECT_TRUE(layout.check_well_formed().ok());
  }
}

TEST(DeviceLayout, WiderAndNarrowerFormatsChangeOnlyTheStick) {
  const DeviceLayout fp32 = standard({4, 100}, DataFormat::IEEE_FP32);
  EXPECT_THAT(fp32.device_size, ElementsAre(4, 4, 32));
  EXPECT_THAT(fp32.stride_map, ElementsAre(32, 100, 1));
  EXPECT_EQ(fp32.byte_size().value(), Bytes(2048));
  const DeviceLayout int8 = standard({4, 100}, DataFormat::SENINT8);
  EXPECT_THAT(int8.device_size, ElementsAre(1, 4, 128));
  EXPECT_THAT(int8.stride_map, ElementsAre(128, 100, 1));
  EXPECT_EQ(int8.byte_size().value(), Bytes(512));
  EXPECT_EQ(standard({4, 100}, DataFormat::IEEE_INT32).byte_size().value(), Bytes(2048));
}

TEST(DeviceLayout, HostStridesEnterTheStrideMapAsGiven) {
  const auto column_major = DeviceLayout::ordered(Ints{40, 60}, Ints{1, 40}, kDl16, Ints{0, 1}).value();
  EXPECT_THAT(column_major.device_size, ElementsAre(1, 40, 64));
  EXPECT_THAT(column_major.stride_map, ElementsAre(2560, 1, 40));
}

TEST(DeviceLayout, DeviceStridesAreRowMajor) {
  EXPECT_THAT(standard({5, 100, 150}).device_strides(), ElementsAre(960, 320, 64, 1));
}

TEST(DeviceLayout, PrintsAsUpstreamDoes) {
  EXPECT_EQ(standard({512, 256}).to_string(),
            "SpyreTensorLayout(device_size=[4, 512, 64], stride_map =[64, 256, 1], "
            "device_dtype=DataFormats.SEN169_FP16)");
  EXPECT_EQ(standard({512, 256}).with_element_arrangement(ElementArrangement::EXX2).to_string(),
            "SpyreTensorLayout(device_size=[4, 512, 64], stride_map =[64, 256, 1], "
            "device_dtype=DataFormats.SEN169_FP16, element_arrangement=ElementArrangement.EXX2)");
}

TEST(DeviceLayout, EqualityAndHashCoverAllFourFields) {
  const DeviceLayout a = standard({512, 256});
  const std::unordered_set<DeviceLayout> different = {
      a, ordered({512, 256}, {1, 0}), a.with_element_arrangement(ElementArrangement::EXX2),
      DeviceLayout::raw(a.device_size, a.stride_map, DataFormat::BFLOAT16)};
  EXPECT_EQ(different.size(), 4U);
  EXPECT_EQ(a, ordered({512, 256}, {0, 1}));
  EXPECT_EQ(std::hash<DeviceLayout>()(a), std::hash<DeviceLayout>()(ordered({512, 256}, {0, 1})));
  EXPECT_EQ(a, DeviceLayout::raw({4, 512, 64}, {64, 256, 1}, kDl16));
}

TEST(DeviceLayout, ReadsBackFromItsJson) {
  const DeviceLayout layout = standard({5, 70}).with_element_arrangement(ElementArrangement::QFP8CH);
  EXPECT_EQ(DeviceLayout::from_json(layout.to_json()).value(), layout);
  EXPECT_FALSE(DeviceLayout::from_json(Json::parse(R"({"device_size": [1, "x"]})")).ok());
}

TEST(DeviceLayout, RefusesOrdersThatAreNotPermutations) {
  const auto message = [](const Ints& order) {
    return DeviceLayout::ordered(Ints{4, 8}, Ints{8, 1}, kDl16, order).error().message;
  };
  EXPECT_THAT(message({0}), HasSubstr("takes 2 entries, or one more with -1 last"));
  EXPECT_THAT(message({0, 1, 0}), HasSubstr("must be -1"));
  EXPECT_THAT(message({0, 0}), HasSubstr("permutation of 0..1"));
  EXPECT_THAT(message({0, 2}), HasSubstr("permutation of 0..1"));
  EXPECT_THAT(message({0, -1}), HasSubstr("permutation of 0..1"));
  EXPECT_THAT(DeviceLayout::ordered(Ints{4, 8}, Ints{1}, kDl16, Ints{0, 1}).error().message,
              HasSubstr("same length"));
}

TEST(DeviceLayout, RefusesFormatsWithoutSticks) {
  EXPECT_THAT(DeviceLayout::standard(Ints{4}, DataFormat::INVALID).error().message,
              testing::StartsWith("Spyre backend does not support dtype"));
  EXPECT_THAT(DeviceLayout::raw({1, 64}, {64, 1}, DataFormat::SEN153_FP9).byte_size().error().message,
              HasSubstr("No device stick geometry for data format SEN153_FP9"));
  EXPECT_THAT(DeviceLayout::raw({1, 64}, {64, 1}, DataFormat::INVALID).byte_size().error().message,
              HasSubstr("No device element width for data format INVALID"));
}

TEST(DeviceLayout, RawLayoutsAreCheckedOnlyWhenUsed) {
  const auto refused = [](const Ints& size, const Ints& map) {
    return !DeviceLayout::raw(size, map, kDl16).check_well_formed().ok();
  };
  EXPECT_TRUE(refused({}, {}));
  EXPECT_TRUE(refused({1, 64}, {1}));
  EXPECT_TRUE(refused({-1, 64}, {64, 1}));
  EXPECT_TRUE(refused({1, 64}, {-2, 1}));
  EXPECT_TRUE(refused({1, 32}, {32, 1}));
  EXPECT_TRUE(refused({int64_t{1} << 40, int64_t{1} << 40, 64}, {64, 64, 1}));
  EXPECT_FALSE(refused({1, 64}, {64, 1}));
}

TEST(DeviceLayout, EmptyTensorsTakeNoBytes) {
  EXPECT_EQ(standard({0}).byte_size().value(), Bytes(0));
  EXPECT_EQ(standard({4, 0}).byte_size().value(), Bytes(0));
  EXPECT_EQ(standard({0, 4}).byte_size().value(), Bytes(0));
}

TEST(DeviceLayout, StorageIsNeverSmallerThanTheHostImage) {
  EXPECT_EQ(storage_bytes(Bytes(512), 100, Bytes(8)), Bytes(800));
  EXPECT_EQ(storage_bytes(Bytes(128), 2, Bytes(2)), Bytes(128));
}

TEST(DeviceLayout, PickledStatesOfAllVersionsAreLocated) {
  EXPECT_EQ(layout_state_shape(3, 5).value().element_arrangement, 4);
  EXPECT_EQ(layout_state_shape(2, 4).value().stride_map, 2);
  EXPECT_EQ(layout_state_shape(2, 4).value().element_arrangement, LayoutStateShape::kAbsent);
  EXPECT_EQ(layout_state_shape(1, 5).value().device_dtype, 4);
  EXPECT_THAT(layout_state_shape(3, 4).error().message, HasSubstr("version 3 has 5 entries, found 4"));
  EXPECT_THAT(layout_state_shape(4, 5).error().message, HasSubstr("version 4 is unknown"));
}

}  // namespace
}  // namespace spyre
