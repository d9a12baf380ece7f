#include "spyre/layout/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "spyre/base/text.h"
#include "spyre/base/thread_pool.h"
#include "spyre/layout/element_map.h"
#include "spyre/layout/test_layouts.h"

namespace spyre {
namespace {

using testing::Each;
using testing::HasSubstr;
using namespace test;  // NOLINT: test support of this layer
using ByteVector = std::vector<std::byte>;

constexpr std::byte kPoison{0xA5};

int64_t device_size_of(const DeviceLayout& layout) {
  return layout.byte_size().value().count();
}

/// Elements from the first to the last that a tensor of these strides touches.
int64_t span_of(const Ints& sizes, const Ints& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      return 0;
    }
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

/// Calls body(host offset, logical offset) for each element, in row-major order.
template <typename Body>
void each_element(const ViewGeometry& view, const Ints& host_strides, const Body& body) {
  for (int64_t n = 0; n < view.numel(); ++n) {
    int64_t rest = n, host = 0, logical = view.storage_offset;
    for (size_t i = view.sizes.size(); i-- > 0;) {
      host += rest % view.sizes[i] * host_strides[i];
      logical += rest % view.sizes[i] * view.strides[i];
      rest /= view.sizes[i];
    }
    body(host, logical);
  }
}

/// The judge: pack and unpack by the element map, with conversions by their definition.
ByteVector judged_pack(ByteVector image, const ByteVector& host, HostType type, const Ints& host_strides,
                       const DeviceLayout& layout, const ViewGeometry& view) {
  const ElementMap map = ElementMap::of(layout).value();
  const Convert convert = find_conversion(type, layout.device_dtype, Direction::kHostToDevice,
                                          Sen169Policy::kPublished, ConvertPath::kReference)
                              .value();
  if (view.whole_base) {
    std::ranges::fill(image, std::byte{0});
  }
  each_element(view, host_strides, [&](int64_t from, int64_t logical) {
    for (const int64_t copy : map.copies()) {
      const int64_t to = map.device_offset(logical).value() + copy;
      EXPECT_EQ(
          convert.run(host.data() + from * convert.src_bytes(), image.data() + to * convert.dst_bytes(), 1),
          1);
    }
  });
  return image;
}

ByteVector judged_unpack(ByteVector host, const ByteVector& image, HostType type, const Ints& host_strides,
                         const DeviceLayout& layout, const ViewGeometry& view) {
  const ElementMap map = ElementMap::of(layout).value();
  const Convert convert = find_conversion(type, layout.device_dtype, Direction::kDeviceToHost,
                                          Sen169Policy::kPublished, ConvertPath::kReference)
                              .value();
  each_element(view, host_strides, [&](int64_t to, int64_t logical) {
    const int64_t from = map.device_offset(logical).value();
    EXPECT_EQ(
        convert.run(image.data() + from * convert.src_bytes(), host.data() + to * convert.dst_bytes(), 1), 1);
  });
  return host;
}

/// Host memory that every conversion accepts: random bytes, but bool 0 or 1 and int64 within 32 bits.
ByteVector random_host(HostType type, int64_t elements, std::mt19937& random) {
  const int width = info_of(type).host_bytes;
  ByteVector bytes(static_cast<size_t>(elements * width));
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random());
  }
  for (int64_t i = 0; i < elements; ++i) {
    if (type == HostType::kBool) {
      bytes[static_cast<size_t>(i)] = static_cast<std::byte>(random() & 1);
    } else if (type == HostType::kInt64) {
      const auto value = static_cast<int64_t>(static_cast<int32_t>(random()));
      std::memcpy(bytes.data() + i * 8, &value, sizeof(value));
    }
  }
  return bytes;
}

std::string describe(const DeviceLayout& layout, const ViewGeometry& view, const Ints& host_strides,
                     HostType type) {
  return layout.to_string() + " " + std::string(to_string(type)) + " sizes " + list_text(view.sizes) +
         " strides " + list_text(view.strides) + " offset " + std::to_string(view.storage_offset) + " host " +
         list_text(host_strides) + (view.whole_base ? " whole" : " part");
}

/// Packs into poisoned memory and unpacks again; both must be what the judge says, byte for byte.
void expect_as_judged(const DeviceLayout& layout, const ViewGeometry& view, const Ints& host_strides,
                      HostType type, std::mt19937& random) {
  SCOPED_TRACE(describe(layout, view, host_strides, type));
  const ByteVector host = random_host(type, span_of(view.sizes, host_strides), random);
  const ByteVector poison(static_cast<size_t>(device_size_of(layout)), kPoison);

  ByteVector image = poison;
  const Status packed = pack({host.data(), type, view.sizes, host_strides}, layout, view, image);
  ASSERT_TRUE(packed.ok()) << packed.error().to_string();
  ASSERT_EQ(image, judged_pack(poison, host, type, host_strides, layout, view));

  if (std::ranges::find(host_strides, 0) == host_strides.end()) {
    const ByteVector blank(host.size(), kPoison);
    ByteVector back = blank;
    const Status unpacked = unpack(image, layout, view, {back.data(), type, view.sizes, host_strides});
    ASSERT_TRUE(unpacked.ok()) << unpacked.error().to_string();
    ASSERT_EQ(back, judged_unpack(blank, image, type, host_strides, layout, view));
  }
}

std::vector<uint16_t> codes(const ByteVector& image) {
  std::vector<uint16_t> result(image.size() / 2);
  std::memcpy(result.data(), image.data(), image.size());
  return result;
}

TEST(Pack, PutsElementsOnTheirSticksAndZeroesTheRest) {
  const std::vector<uint16_t> host = {0x3C00, 0x4000, 0xBC00, 0x3800};  // 1, 2, -1, 0.5 as [2, 2]
  ByteVector image(2 * 128, kPoison);
  const ConstHostBuffer src = {
      reinterpret_cast<const std::byte*>(host.data()), HostType::kFloat16, {2, 2}, {2, 1}};
  ASSERT_TRUE(pack(src, standard({2, 2}), ViewGeometry::whole({2, 2}, {2, 1}), image).ok());
  std::vector<uint16_t> expected(128, 0);
  expected[0] = 0x3E00, expected[1] = 0x4000, expected[64] = 0xBE00, expected[65] = 0x3C00;
  EXPECT_EQ(codes(image), expected);
}

TEST(Pack, APartLeavesEveryOtherByteAlone) {
  const std::vector<uint16_t> host = {0x3C00};
  ByteVector image(128, kPoison);
  const ConstHostBuffer src = {reinterpret_cast<const std::byte*>(host.data()), HostType::kFloat16, {1}, {1}};
  ASSERT_TRUE(pack(src, standard({60}), {.sizes = {1}, .strides = {1}, .storage_offset = 7}, image).ok());
  std::vector<uint16_t> expected(64, 0xA5A5);
  expected[7] = 0x3E00;
  EXPECT_EQ(codes(image), expected);
}

TEST(Pack, NamesTheFirstInt64ThatDoesNotFit) {
  const std::vector<int64_t> host = {1, -2147483648, 2147483647, 2147483648, int64_t{1} << 40};
  ByteVector image(128);
  const auto status = pack({reinterpret_cast<const std::byte*>(host.data()), HostType::kInt64, {5}, {1}},
                           standard({5}, DataFormat::IEEE_INT32), ViewGeometry::whole({5}, {1}), image);
  EXPECT_EQ(status.error().message, "value 2147483648 at index [3] does not fit the card's 32-bit integers");
  EXPECT_EQ(status.error().kind, ErrorKind::kOutOfRange);
}

TEST(Pack, TheMisfitNamedDoesNotDependOnThreads) {
  std::vector<int64_t> host(300 * 500, 7);
  host[123 * 500 + 45] = int64_t{1} << 33;
  host[280 * 500 + 1] = int64_t{1} << 34;
  const DeviceLayout layout = standard({300, 500}, DataFormat::IEEE_INT32);
  ByteVector image(static_cast<size_t>(device_size_of(layout)));
  const int threads = parallel_threads();
  for (const int n : {1, 2, 5}) {
    set_parallel_threads(n);
    const auto status =
        pack({reinterpret_cast<const std::byte*>(host.data()), HostType::kInt64, {300, 500}, {500, 1}},
             layout, ViewGeometry::whole({300, 500}, {500, 1}), image);
    EXPECT_THAT(status.error().message, HasSubstr("value 8589934592 at index [123, 45]"));
  }
  set_parallel_threads(threads);
}

TEST(Pack, RefusesWhatCannotBeWritten) {
  const ByteVector host(4096);
  ByteVector image(4096);
  const auto message = [&](const Ints& sizes, const Ints& strides, const ViewGeometry& view, HostType type) {
    return pack({host.data(), type, sizes, strides}, standard({4, 8}), view, image).error().to_string();
  };
  const ViewGeometry whole = ViewGeometry::whole({4, 8}, {8, 1});
  EXPECT_THAT(message({8, 4}, {4, 1}, whole, HostType::kFloat16),
              HasSubstr("Invalid device sizes for host sizes. Expected: [8, 4], got: [4, 8]"));
  EXPECT_THAT(message({4, 8}, {8, 1}, {.sizes = {4, 8}, .strides = {0, 1}}, HostType::kFloat16),
              HasSubstr("shows one element several times"));
  EXPECT_THAT(message({4, 8}, {8, 1}, whole, HostType::kInt8),
              HasSubstr("Unsupported DCI data format conversion"));
  EXPECT_THAT(message({5, 8}, {8, 1}, {.sizes = {5, 8}, .strides = {8, 1}}, HostType::kFloat16),
              HasSubstr("no place for element 39"));
  EXPECT_THAT(pack({host.data(), HostType::kFloat16, {4, 8}, {8, 1}}, standard({4, 8}), whole,
                   std::span(image).first(511))
                  .error()
                  .message,
              HasSubstr("takes 512 bytes, the device memory given has 511"));
}

TEST(Unpack, RefusesAnExpandedDestination) {
  ByteVector image(512), host(64);
  EXPECT_THAT(unpack(image, standard({4, 8}), ViewGeometry::whole({4, 8}, {8, 1}),
                     {host.data(), HostType::kFloat16, {4, 8}, {0, 1}})
                  .error()
                  .message,
              HasSubstr("is expanded and cannot be written"));
}

TEST(Pack, EmptyTensorsTouchNothing) {
  const auto status = pack({nullptr, HostType::kFloat16, {0, 8}, {8, 1}}, standard({0, 8}),
                           ViewGeometry::whole({0, 8}, {8, 1}), {});
  EXPECT_TRUE(status.ok());
}

TEST(Pack, EveryAcceptanceLayoutRoundTrips) {
  std::mt19937 random(1);
  struct Row {
    Ints size, strides, device_size, stride_map;
  };
  const Row rows[] = {
      {{60}, {1}, {1, 64}, {64, 1}},
      {{40, 60}, {60, 1}, {1, 60, 64}, {3840, 1, 60}},
      {{40, 240}, {240, 1}, {4, 40, 64}, {64, 240, 1}},
      {{40, 60}, {60, 1}, {1, 512, 64}, {64, 60, 1}},
      {{40, 240}, {240, 1}, {4, 512, 64}, {64, 240, 1}},
      {{60}, {1}, {1, 512, 64}, {64, 0, 1}},
      {{40, 60}, {60, 1}, {38, 64}, {64, 1}},
      {{60}, {1}, {1, 60, 64}, {64, 1, 1}},
      {{60}, {1}, {1, 2, 64}, {64, 30, 1}},
      {{60}, {1}, {2, 1, 2, 64}, {15, 64, 30, 1}},
      {{4800}, {1}, {3, 2, 14, 64}, {120, 64, 360, 1}},
      {{40, 60}, {60, 1}, {24, 1, 2, 64}, {60, 64, 1440, 1}},
      {{40, 60}, {60, 1}, {2, 12, 1, 2, 64}, {720, 60, 64, 1200, 1}},
      {{40, 60}, {1, 40}, {1, 40, 64}, {2560, 1, 40}},
      {{40, 60}, {1, 40}, {1, 60, 64}, {64, 40, 1}},
  };
  for (const Row& row : rows) {
    expect_as_judged(DeviceLayout::raw(row.device_size, row.stride_map, DataFormat::SEN169_FP16),
                     ViewGeometry::whole(row.size, row.strides), row.strides, HostType::kFloat16, random);
  }
}

TEST(Pack, ArrangementsRoundTrip) {
  std::mt19937 random(2);
  const auto check = [&](const Ints& size, DataFormat format, ElementArrangement arrangement, HostType type) {
    expect_as_judged(standard(size, format).with_element_arrangement(arrangement),
                     ViewGeometry::whole(size, contiguous_strides(size)), contiguous_strides(size), type,
                     random);
  };
  check({3, 128}, DataFormat::IEEE_FP32, ElementArrangement::DL16_TO_FP32, HostType::kFloat32);
  check({3, 100}, DataFormat::IEEE_FP32, ElementArrangement::DL16_TO_FP32, HostType::kFloat32);
  check({3, 128}, DataFormat::SEN169_FP16, ElementArrangement::FP32_TO_DL16, HostType::kFloat16);
  check({3, 90}, DataFormat::SEN169_FP16, ElementArrangement::FP32_TO_DL16, HostType::kFloat16);
  check({6, 192}, DataFormat::SEN143_FP8, ElementArrangement::QFP8WT, HostType::kFloat8E4M3FN);
  check({5, 2}, DataFormat::SEN169_FP16, ElementArrangement::EXX2, HostType::kFloat16);
}

TEST(Pack, ViewsThatAreNoNestsGoElementByElement) {
  std::mt19937 random(3);
  expect_as_judged(standard({128, 128}), {.sizes = {128}, .strides = {129}}, {1}, HostType::kFloat16, random);
  // Steps of 3 over 100 sticks never settle into blocks.
  expect_as_judged(standard({6400}), {.sizes = {2133}, .strides = {3}, .storage_offset = 1}, {1},
                   HostType::kFloat16, random);
  // The layout is flat, the host transposed: rows and sticks do not line up.
  expect_as_judged(standard({30 * 50}), ViewGeometry::whole({30, 50}, {50, 1}), {1, 30}, HostType::kFloat16,
                   random);
}

struct Case {
  DeviceLayout layout;
  ViewGeometry view;
  Ints host_strides;
};

/// A base of random shape and dim order, a random view of it, and a host tensor of random strides.
Case random_case(HostType type, std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const int64_t rank = pick(0, 6);
  int64_t budget = 6000;
  Ints size, order;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t n = std::min(budget, pick(0, 2) == 0 ? pick(30, 140) : pick(1, 5));
    size.push_back(std::max<int64_t>(1, n));
    budget /= size.back();
    order.insert(order.begin() + pick(0, i), i);
  }
  if (pick(0, 5) == 0) {
    order.push_back(-1);
  }
  const Ints strides = contiguous_strides(size);
  Case result;
  result.layout = DeviceLayout::ordered(size, strides, info_of(type).device_format, order).value();

  ViewGeometry& view = result.view;
  view = ViewGeometry::whole(size, strides);
  const bool part = pick(0, 1) == 1;
  for (size_t i = 0; part && i < size.size(); ++i) {
    const int64_t start = pick(0, size[i] - 1), step = pick(0, 2) == 0 ? pick(2, 3) : 1;
    view.storage_offset += start * strides[i];
    view.sizes[i] = pick(0, 9) == 0 ? 0 : ceil_div(size[i] - start, step);
    view.strides[i] *= step;
  }
  view.whole_base = !part;
  for (size_t i = 0; i + 1 < view.sizes.size(); ++i) {  // transpose at random
    const auto j =
        static_cast<size_t>(pick(static_cast<int64_t>(i), static_cast<int64_t>(view.sizes.size()) - 1));
    std::swap(view.sizes[i], view.sizes[j]);
    std::swap(view.strides[i], view.strides[j]);
  }
  // The host tensor: axes in any order, with gaps, sometimes expanded.
  Ints host_order;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    host_order.insert(pick(0, 2) == 0 ? host_order.begin() : host_order.end(), static_cast<int64_t>(i));
  }
  result.host_strides.resize(view.sizes.size());
  int64_t next = pick(0, 3) == 0 ? 2 : 1;
  for (size_t i = host_order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(host_order[i]);
    const bool expand = pick(0, 11) == 0;
    result.host_strides[axis] = expand ? 0 : next;
    next = expand ? next : next * std::max<int64_t>(1, view.sizes[axis]) + (pick(0, 3) == 0 ? pick(1, 3) : 0);
  }
  return result;
}

TEST(Pack, RandomTensorsOfEveryTypeAreAsJudgedOnAnyNumberOfThreads) {
  constexpr unsigned kSeed = 97531;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const int threads = parallel_threads();
  for (int round = 0; round < 1100 && !testing::Test::HasFatalFailure(); ++round) {
    const auto type = static_cast<HostType>(round % kHostTypeCount);
    const Case c = random_case(type, random);
    set_parallel_threads(1 + round % 3);
    expect_as_judged(c.layout, c.view, c.host_strides, type, random);
  }
  set_parallel_threads(threads);
}

TEST(Pack, TensorsOfManyUnitsOfWorkAreAsJudged) {
  std::mt19937 random(4);
  const auto check = [&](const Ints& size, const Ints& order, const Ints& host_strides, HostType type) {
    const Ints strides = contiguous_strides(size);
    const auto layout = DeviceLayout::ordered(size, strides, info_of(type).device_format, order).value();
    expect_as_judged(layout, ViewGeometry::whole(size, strides), host_strides, type, random);
  };
  check({300, 3000}, {0, 1}, {3000, 1}, HostType::kFloat16);
  check({900001}, {0}, {1}, HostType::kFloat16);
  check({700, 1100}, {1, 0}, {1100, 1}, HostType::kFloat32);
}

TEST(Fill, WritesTheViewAndNothingElse) {
  const DeviceLayout layout = standard({4, 100});
  const ViewGeometry view = {.sizes = {2, 50}, .strides = {100, 2}, .storage_offset = 101};
  ByteVector image(static_cast<size_t>(device_size_of(layout)), kPoison);
  ASSERT_TRUE(fill(image, layout, view, 0x3E00).ok());
  std::vector<uint16_t> expected(image.size() / 2, 0xA5A5);
  const ElementMap map = ElementMap::of(layout).value();
  each_element(view, {50, 1}, [&](int64_t, int64_t logical) {
    expected[static_cast<size_t>(map.device_offset(logical).value())] = 0x3E00;
  });
  EXPECT_EQ(codes(image), expected);
}

TEST(Fill, AWholeBaseGetsZeroPadding) {
  ByteVector image(256, kPoison);
  ASSERT_TRUE(fill(image, standard({2, 3}), ViewGeometry::whole({2, 3}, {3, 1}), 0x3E00).ok());
  std::vector<uint16_t> expected(128, 0);
  for (const size_t i : {0, 1, 2, 64, 65, 66}) {
    expected[i] = 0x3E00;
  }
  EXPECT_EQ(codes(image), expected);
  ASSERT_TRUE(fill(image, standard({2, 3}), ViewGeometry::whole({2, 3}, {3, 1}), 0).ok());
  EXPECT_THAT(codes(image), Each(0));
}

TEST(Fill, WorksThroughExpandedAndDiagonalViews) {
  const DeviceLayout layout = standard({64, 64}, DataFormat::IEEE_FP32);
  ByteVector image(static_cast<size_t>(device_size_of(layout)), kPoison);
  ASSERT_TRUE(fill(image, layout, {.sizes = {5, 64}, .strides = {0, 65}}, 0x3F800000).ok());
  const ElementMap map = ElementMap::of(layout).value();
  for (int64_t i = 0; i < 64 * 64; ++i) {
    uint32_t found;
    std::memcpy(&found, image.data() + map.device_offset(i).value() * 4, sizeof(found));
    EXPECT_EQ(found, i % 65 == 0 ? 0x3F800000U : 0xA5A5A5A5U) << i;
  }
}

TEST(Fill, EveryCopyOfABroadcastElement) {
  ByteVector image(3 * 128, kPoison);
  const DeviceLayout layout = DeviceLayout::raw({1, 3, 64}, {64, 0, 1}, DataFormat::SEN169_FP16);
  ASSERT_TRUE(fill(image, layout, {.sizes = {1}, .strides = {1}, .storage_offset = 5}, 0x1234).ok());
  for (const size_t row : {0, 1, 2}) {
    EXPECT_EQ(codes(image)[row * 64 + 5], 0x1234);
    EXPECT_EQ(codes(image)[row * 64 + 4], 0xA5A5);
  }
}

}  // namespace
}  // namespace spyre
