#include "spyre/layout/transfer_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/layout/data_conversion_info.h"
#include "spyre/layout/test_layouts.h"

namespace spyre {

void PrintTo(const Nest& nest, std::ostream* out) {
  *out << list_text(nest.counts) << " host " << list_text(nest.host_strides) << "@" << nest.host_offset
       << " device " << list_text(nest.device_strides) << "@" << nest.device_offset;
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace test;  // NOLINT: test support of this layer

/// Every (host offset, device offset) that the nests visit, in any order.
std::multimap<int64_t, int64_t> visited(const std::vector<Nest>& nests) {
  std::multimap<int64_t, int64_t> pairs;
  for (const Nest& nest : nests) {
    const int64_t total = numel_of(nest.counts);
    for (int64_t n = 0; n < total; ++n) {
      int64_t rest = n, host = nest.host_offset, device = nest.device_offset;
      for (size_t i = nest.counts.size(); i-- > 0;) {
        host += rest % nest.counts[i] * nest.host_strides[i];
        device += rest % nest.counts[i] * nest.device_strides[i];
        rest /= nest.counts[i];
      }
      pairs.emplace(host, device);
    }
  }
  return pairs;
}

/// The same by the definition: each element of the view, each of its copies.
std::multimap<int64_t, int64_t> defined(const ElementMap& map, const ViewGeometry& view,
                                        const Ints& host_strides) {
  std::multimap<int64_t, int64_t> pairs;
  for (int64_t n = 0; n < view.numel(); ++n) {
    int64_t rest = n, host = 0, logical = view.storage_offset;
    for (size_t i = view.sizes.size(); i-- > 0;) {
      host += rest % view.sizes[i] * host_strides[i];
      logical += rest % view.sizes[i] * view.strides[i];
      rest /= view.sizes[i];
    }
    for (const int64_t copy : map.copies()) {
      pairs.emplace(host, map.device_offset(logical).value() + copy);
    }
  }
  return pairs;
}

/// Multimaps with equal keys compare in insertion order, so compare as sorted lists.
std::vector<std::pair<int64_t, int64_t>> sorted(const std::multimap<int64_t, int64_t>& pairs) {
  std::vector<std::pair<int64_t, int64_t>> list(pairs.begin(), pairs.end());
  std::ranges::sort(list);
  return list;
}

void expect_equals_definition(const DeviceLayout& layout, const ViewGeometry& view,
                              const Ints& host_strides) {
  const ElementMap map = ElementMap::of(layout).value();
  const auto nests = plan_nests(map, view, host_strides);
  ASSERT_TRUE(nests.ok()) << nests.error().to_string() << "\n" << layout.to_string();
  ASSERT_TRUE(nests.value().has_value()) << layout.to_string();
  EXPECT_EQ(sorted(visited(*nests.value())), sorted(defined(map, view, host_strides)))
      << layout.to_string() << " sizes " << list_text(view.sizes) << " strides " << list_text(view.strides)
      << " offset " << view.storage_offset << " host " << list_text(host_strides);
}

std::vector<Nest> nests_of(const DeviceLayout& layout, const Ints& size, const Ints& strides) {
  return plan_nests(ElementMap::of(layout).value(), ViewGeometry::whole(size, strides), strides)
      .value()
      .value();
}
std::vector<Nest> nests_of_standard(const Ints& size, DataFormat format = kDl16) {
  return nests_of(DeviceLayout::standard(size, format).value(), size, contiguous_strides(size));
}

TEST(TransferPlan, FullSticksAreOneNest) {
  EXPECT_THAT(nests_of_standard({1024, 256}),
              ElementsAre(Nest{{4, 1024, 64}, {64, 256, 1}, {65536, 64, 1}, 0, 0}));
}

TEST(TransferPlan, ShortSticksAreASecondNest) {
  EXPECT_THAT(nests_of_standard({512, 240}),
              ElementsAre(Nest{{3, 512, 64}, {64, 240, 1}, {32768, 64, 1}, 0, 0},
                          Nest{{1, 512, 48}, {64, 240, 1}, {32768, 64, 1}, 192, 98304}));
  EXPECT_THAT(nests_of_standard({5, 100, 150}),
              ElementsAre(Nest{{100, 2, 5, 64}, {150, 64, 15000, 1}, {960, 320, 64, 1}, 0, 0},
                          Nest{{100, 1, 5, 22}, {150, 64, 15000, 1}, {960, 320, 64, 1}, 128, 640}));
  EXPECT_THAT(nests_of_standard({120}),
              ElementsAre(Nest{{1, 64}, {64, 1}, {64, 1}, 0, 0}, Nest{{1, 56}, {64, 1}, {64, 1}, 64, 64}));
  EXPECT_THAT(nests_of_standard({4, 100}, DataFormat::IEEE_FP32),
              ElementsAre(Nest{{3, 4, 32}, {32, 100, 1}, {128, 32, 1}, 0, 0},
                          Nest{{1, 4, 4}, {32, 100, 1}, {128, 32, 1}, 96, 384}));
}

TEST(TransferPlan, TransposedAndSparseLayoutsAreOneNest) {
  const Ints size = {512, 256};
  const Ints strides = {256, 1};
  EXPECT_THAT(nests_of(DeviceLayout::ordered(size, strides, kDl16, Ints{1, 0}).value(), size, strides),
              ElementsAre(Nest{{8, 256, 64}, {16384, 1, 256}, {16384, 64, 1}, 0, 0}));
  EXPECT_THAT(nests_of(DeviceLayout::ordered(size, strides, kDl16, Ints{0, 1, -1}).value(), size, strides),
              ElementsAre(Nest{{256, 1, 512, 1}, {1, 1, 256, 1}, {32768, 32768, 64, 1}, 0, 0}));
}

struct Vector {
  Ints size, strides, device_size, stride_map;
  std::vector<std::tuple<Ints, int64_t, int64_t>> nests;  // counts, host offset, device offset
};

TEST(TransferPlan, GivesTheAcceptanceVectors) {
  const Vector vectors[] = {
      {{60}, {1}, {1, 64}, {64, 1}, {{{1, 60}, 0, 0}}},
      {{40, 60}, {60, 1}, {1, 60, 64}, {3840, 1, 60}, {{{1, 60, 40}, 0, 0}}},
      {{40, 240}, {240, 1}, {4, 40, 64}, {64, 240, 1}, {{{3, 40, 64}, 0, 0}, {{1, 40, 48}, 192, 7680}}},
      {{40, 60}, {60, 1}, {1, 512, 64}, {64, 60, 1}, {{{1, 40, 60}, 0, 0}}},
      {{40, 240}, {240, 1}, {4, 512, 64}, {64, 240, 1}, {{{3, 40, 64}, 0, 0}, {{1, 40, 48}, 192, 98304}}},
      {{60}, {1}, {1, 512, 64}, {64, 0, 1}, {{{1, 512, 60}, 0, 0}}},
      {{40, 60}, {60, 1}, {38, 64}, {64, 1}, {{{37, 64}, 0, 0}, {{1, 32}, 2368, 2368}}},
      {{60}, {1}, {1, 60, 64}, {64, 1, 1}, {{{1, 60, 1}, 0, 0}}},
      {{60}, {1}, {1, 2, 64}, {64, 30, 1}, {{{1, 2, 30}, 0, 0}}},
      {{60}, {1}, {2, 1, 2, 64}, {15, 64, 30, 1}, {{{2, 1, 2, 15}, 0, 0}}},
      {{4800},
       {1},
       {3, 2, 14, 64},
       {120, 64, 360, 1},
       {{{3, 1, 13, 64}, 0, 0},
        {{1, 1, 1, 64}, 4680, 832},
        {{3, 1, 13, 56}, 64, 896},
        {{1, 1, 1, 56}, 4744, 1728}}},
      {{40, 60},
       {60, 1},
       {24, 1, 2, 64},
       {60, 64, 1440, 1},
       {{{24, 1, 1, 60}, 0, 0}, {{16, 1, 1, 60}, 1440, 64}}},
      {{40, 60},
       {60, 1},
       {2, 12, 1, 2, 64},
       {720, 60, 64, 1200, 1},
       {{{1, 12, 1, 2, 60}, 0, 0}, {{1, 8, 1, 2, 60}, 720, 1536}}},
      {{40, 60}, {1, 40}, {1, 40, 64}, {2560, 1, 40}, {{{1, 40, 60}, 0, 0}}},
      {{40, 60}, {1, 40}, {1, 60, 64}, {64, 40, 1}, {{{1, 60, 40}, 0, 0}}},
  };
  for (const Vector& v : vectors) {
    const DeviceLayout layout = DeviceLayout::raw(v.device_size, v.stride_map, kDl16);
    const std::vector<Nest> nests = nests_of(layout, v.size, v.strides);
    std::vector<std::tuple<Ints, int64_t, int64_t>> found;
    for (const Nest& nest : nests) {
      found.emplace_back(nest.counts, nest.host_offset, nest.device_offset);
    }
    EXPECT_EQ(found, v.nests) << layout.to_string();
    expect_equals_definition(layout, ViewGeometry::whole(v.size, v.strides), v.strides);
  }
}

TEST(TransferPlan, Fp8WeightsWalkPairsOfRows) {
  const Ints size = {6, 192};
  const DeviceLayout layout = DeviceLayout::standard(size, DataFormat::SEN143_FP8)
                                  .value()
                                  .with_element_arrangement(ElementArrangement::QFP8WT);
  EXPECT_THAT(nests_of(layout, size, {192, 1}),
              ElementsAre(Nest{{3, 3, 64, 2}, {64, 384, 1, 192}, {384, 128, 2, 1}, 0, 0}));
}

TEST(TransferPlan, ArrangementsAreMoreLoopsOfTheSameNest) {
  const auto layout = [](DataFormat format, ElementArrangement arrangement) {
    return DeviceLayout::standard(Ints{3, 128}, format).value().with_element_arrangement(arrangement);
  };
  const ViewGeometry whole = ViewGeometry::whole({3, 128}, {128, 1});
  const DeviceLayout widened = layout(DataFormat::IEEE_FP32, ElementArrangement::DL16_TO_FP32);
  EXPECT_EQ(nests_of(widened, {3, 128}, {128, 1}).size(), 1U);
  expect_equals_definition(widened, whole, {128, 1});
  const DeviceLayout narrowed = layout(kDl16, ElementArrangement::FP32_TO_DL16);
  EXPECT_EQ(nests_of(narrowed, {3, 128}, {128, 1}).size(), 1U);
  expect_equals_definition(narrowed, whole, {128, 1});
}

TEST(TransferPlan, ASliceOffTheStickGridHasHeadBodyAndTail) {
  const DeviceLayout layout = DeviceLayout::standard(Ints{4, 320}, kDl16).value();
  const ViewGeometry view = {.sizes = {2, 200}, .strides = {320, 1}, .storage_offset = 2 * 320 + 100};
  EXPECT_THAT(plan_nests(ElementMap::of(layout).value(), view, Ints{200, 1}).value().value(),
              ElementsAre(Nest{{1, 2, 28}, {64, 200, 1}, {256, 64, 1}, 0, 256 + 128 + 36},
                          Nest{{2, 2, 64}, {64, 200, 1}, {256, 64, 1}, 28, 512 + 128},
                          Nest{{1, 2, 44}, {64, 200, 1}, {256, 64, 1}, 156, 1024 + 128}));
}

TEST(TransferPlan, ViewsOfEveryKindEqualTheDefinition) {
  const DeviceLayout layout = DeviceLayout::standard(Ints{6, 5, 150}, kDl16).value();  // strides 750, 150, 1
  const ViewGeometry views[] = {
      {.sizes = {150, 5, 6}, .strides = {1, 150, 750}},                       // permuted
      {.sizes = {5, 150}, .strides = {150, 1}, .storage_offset = 1500},       // x[2]
      {.sizes = {6, 150}, .strides = {750, 1}, .storage_offset = 450},        // x[:, 3]
      {.sizes = {6, 5}, .strides = {750, 150}, .storage_offset = 149},        // x[..., -1]
      {.sizes = {3, 5, 75}, .strides = {1500, 150, 2}, .storage_offset = 1},  // x[::2, :, 1::2]
      {.sizes = {6, 5, 50}, .strides = {750, 150, 3}},                        // x[..., ::3]
      {.sizes = {6, 7, 5, 150}, .strides = {750, 0, 150, 1}},                 // expanded
      {.sizes = {30, 3, 50}, .strides = {150, 50, 1}},                        // view
      {.sizes = {4500}, .strides = {1}},                                      // flattened
      {.sizes = {}, .strides = {}, .storage_offset = 4499},                   // one element
      {.sizes = {6, 0}, .strides = {750, 1}},                                 // none
  };
  for (const ViewGeometry& view : views) {
    expect_equals_definition(layout, view, contiguous_strides(view.sizes));
  }
}

TEST(TransferPlan, ExpandedHostTensorsReadOneElementManyTimes) {
  expect_equals_definition(DeviceLayout::standard(Ints{4, 70}, kDl16).value(),
                           ViewGeometry::whole({4, 70}, {70, 1}), {0, 1});
}

TEST(TransferPlan, ALayoutOfAnotherRankMayBackATensor) {
  const DeviceLayout flat = DeviceLayout::standard(Ints{12 * 100}, kDl16).value();
  expect_equals_definition(flat, ViewGeometry::whole({12, 100}, {100, 1}), {100, 1});
}

TEST(TransferPlan, SaysWhenAViewIsNotNests) {
  const ElementMap map = ElementMap::of(DeviceLayout::standard(Ints{128, 128}, kDl16).value()).value();
  const ViewGeometry diagonal = {.sizes = {128}, .strides = {129}};
  EXPECT_EQ(plan_nests(map, diagonal, Ints{1}).value(), std::nullopt);
}

TEST(TransferPlan, RefusesViewsPastTheLayout) {
  const ElementMap map = ElementMap::of(DeviceLayout::standard(Ints{4, 64}, kDl16).value()).value();
  EXPECT_EQ(plan_nests(map, {.sizes = {5, 64}, .strides = {64, 1}}, Ints{64, 1}).error().kind,
            ErrorKind::kOutOfRange);
  EXPECT_EQ(plan_nests(map, {.sizes = {4}, .strides = {-1}}, Ints{1}).error().kind,
            ErrorKind::kInvalidArgument);
}

TEST(TransferPlan, RandomViewsEqualTheDefinition) {
  constexpr unsigned kSeed = 20240607;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int planned = 0;
  for (int round = 0; round < 400; ++round) {
    const int64_t rank = pick(0, 4);
    Ints size, order;
    for (int64_t i = 0; i < rank; ++i) {
      size.push_back(pick(0, 3) == 0 ? pick(60, 140) : pick(1, 5));
      order.insert(order.begin() + pick(0, i), i);
    }
    if (pick(0, 4) == 0) {
      order.push_back(-1);
    }
    const Ints strides = contiguous_strides(size);
    const DeviceLayout layout = DeviceLayout::ordered(size, strides, kDl16, order).value();
    ViewGeometry view = {.sizes = size, .strides = strides};
    for (size_t i = 0; i < size.size(); ++i) {
      const int64_t start = pick(0, size[i] - 1), step = pick(1, 3);
      view.storage_offset += start * strides[i];
      view.sizes[i] = ceil_div(size[i] - start, step);
      view.strides[i] *= step;
    }
    const ElementMap map = ElementMap::of(layout).value();
    const Ints host = contiguous_strides(view.sizes);
    const auto nests = plan_nests(map, view, host);
    ASSERT_TRUE(nests.ok()) << nests.error().to_string();
    if (nests.value()) {
      ++planned;
      expect_equals_definition(layout, view, host);
    }
  }
  EXPECT_GT(planned, 380);
}

TEST(DataConversionInfo, IsTheDescriptorOfUpstreamWithInnermostFirst) {
  const DeviceLayout layout = DeviceLayout::standard(Ints{512, 240}, kDl16).value();
  const ViewGeometry whole = ViewGeometry::whole({512, 240}, {240, 1});
  const auto to_card = describe_transfer(layout, whole, Ints{240, 1}, DataFormat::IEEE_FP16, true).value();
  EXPECT_EQ(to_card.to_json(), Json::parse(R"({
    "dci_dsName_": "DCI-Tensor-0", "isHostToSen_": true,
    "dataformat_src_": "IEEE_FP16", "dataformat_dst_": "SEN169_FP16",
    "input_shape_": [240, 512], "output_shape_": [64, 512, 4],
    "dcsi_": [
      {"size_": [64, 512, 3], "stride_src_": [1, 240, 64], "stride_dst_": [1, 64, 32768],
       "offset_src_": 0, "offset_dst_": 0},
      {"size_": [48, 512, 1], "stride_src_": [1, 240, 64], "stride_dst_": [1, 64, 32768],
       "offset_src_": 192, "offset_dst_": 98304}]})"));
  const auto back = describe_transfer(layout, whole, Ints{240, 1}, DataFormat::IEEE_FP16, false).value();
  EXPECT_EQ(back.format_src, DataFormat::SEN169_FP16);
  EXPECT_EQ(back.nests[1].stride_src, to_card.nests[1].stride_dst);
  EXPECT_EQ(back.nests[1].offset_src, 98304);
  EXPECT_EQ(back.input_shape, to_card.output_shape);
}

}  // namespace
}  // namespace spyre
