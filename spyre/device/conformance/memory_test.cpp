// What every device promises about its memory.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "spyre/device/conformance/conformance.h"

namespace spyre {
namespace {

using testing::Each;

std::vector<std::byte> counting_up(size_t n) {
  std::vector<std::byte> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::byte>(i % 251);
  }
  return out;
}

void write(Device& device, DeviceAddress at, std::span<const std::byte> bytes) {
  const auto window = device.open({at, Bytes(static_cast<int64_t>(bytes.size()))});
  ASSERT_TRUE(window.ok());
  std::copy(bytes.begin(), bytes.end(), window.value().bytes().begin());
}

std::vector<std::byte> read(Device& device, DeviceAddress at, int64_t size) {
  const auto window = device.open({at, Bytes(size)});
  EXPECT_TRUE(window.ok());
  return {window.value().bytes().begin(), window.value().bytes().end()};
}

TEST_P(DeviceConformance, AFreshCardReadsAsZero) {
  EXPECT_THAT(read(device(), DeviceAddress(12345), 391), Each(std::byte{0}));
}

TEST_P(DeviceConformance, WhatTheHostWritesIsReadBack) {
  const auto sent = counting_up(391);  // three sticks and seven bytes: ragged on purpose
  write(device(), DeviceAddress(4096 - 100), sent);
  EXPECT_EQ(read(device(), DeviceAddress(4096 - 100), 391), sent);
}

TEST_P(DeviceConformance, TwoWindowsOnOneRangeSeeTheSameBytes) {
  const auto one = device().open({DeviceAddress(128), Bytes(128)});
  const auto two = device().open({DeviceAddress(128), Bytes(128)});
  ASSERT_TRUE(one.ok() && two.ok());
  one.value().bytes()[5] = std::byte{42};
  EXPECT_EQ(two.value().bytes()[5], std::byte{42});
}

TEST_P(DeviceConformance, BytesAtBothEndsOfEverySegmentAreDistinct) {
  const Machine& machine = device().machine();
  auto first = [&](int s) { return DeviceAddress(0) + machine.segment_bytes * s; };
  auto last = [&](int s) { return DeviceAddress(0) + machine.segment_bytes * (s + 1) + Bytes(-1); };
  for (int s = 0; s < machine.segments; ++s) {
    write(device(), first(s), std::vector{static_cast<std::byte>(2 * s + 1)});
    write(device(), last(s), std::vector{static_cast<std::byte>(2 * s + 2)});
  }
  for (int s = 0; s < machine.segments; ++s) {
    EXPECT_EQ(read(device(), first(s), 1)[0], static_cast<std::byte>(2 * s + 1));
    EXPECT_EQ(read(device(), last(s), 1)[0], static_cast<std::byte>(2 * s + 2));
  }
}

TEST_P(DeviceConformance, AWindowBeyondTheAddressSpaceIsRefused) {
  const Bytes all = device().machine().address_space();
  const DeviceRange beyond[] = {{DeviceAddress(all.count() - 127), Bytes(128)},
                                {DeviceAddress(all.count() + 1), Bytes(0)},
                                {DeviceAddress(-1), Bytes(1)},
                                {DeviceAddress(0), Bytes(-1)},
                                {DeviceAddress(128), Bytes(INT64_MAX)}};
  for (const DeviceRange& range : beyond) {
    const auto window = device().open(range);
    ASSERT_FALSE(window.ok()) << range.begin.value() << " + " << range.size.count();
    EXPECT_EQ(window.error().kind, ErrorKind::kOutOfRange);
  }
  EXPECT_TRUE(device().open({DeviceAddress(0), all}).ok());
  EXPECT_TRUE(device().open({DeviceAddress(all.count()), Bytes(0)}).ok());
}

TEST_P(DeviceConformance, TokensStandForAddressesAndMapBack) {
  const DeviceAddress address(1000);
  const auto* token = static_cast<const std::byte*>(device().token(address));
  EXPECT_EQ(device().address_of(token), address);
  EXPECT_EQ(device().address_of(token + 24), address + Bytes(24));
  EXPECT_EQ(device().address_of(static_cast<const std::byte*>(device().token(DeviceAddress(0))) - 1),
            std::nullopt);
  EXPECT_EQ(device().address_of(device().token(DeviceAddress(device().machine().address_space().count()))),
            std::nullopt);
  const int on_the_stack = 0;
  EXPECT_EQ(device().address_of(&on_the_stack), std::nullopt);
}

TEST_P(DeviceConformance, NoTokenLiesInAWindow) {
  const auto window = device().open({DeviceAddress(0), device().machine().address_space()});
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(device().address_of(window.value().bytes().data()), std::nullopt);
}

TEST_P(DeviceConformance, DiscardKeepsTheNeighbours) {
  // Two pages and a bit in the middle of written memory: whatever happens inside, nothing happens outside.
  const auto sent = counting_up(5 * 4096);
  write(device(), DeviceAddress(0), sent);
  device().discard({DeviceAddress(4000), Bytes(2 * 4096 + 300)});
  const auto after = read(device(), DeviceAddress(0), 5 * 4096);
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + 4000, sent.begin()));
  EXPECT_TRUE(
      std::equal(after.begin() + 4000 + 2 * 4096 + 300, after.end(), sent.begin() + 4000 + 2 * 4096 + 300));
}

TEST_P(DeviceConformance, ResetForgetsTheMemory) {
  write(device(), DeviceAddress(3 << 20), counting_up(391));
  ASSERT_TRUE(device().reset().ok());
  EXPECT_THAT(read(device(), DeviceAddress(3 << 20), 391), Each(std::byte{0}));
}

}  // namespace
}  // namespace spyre
