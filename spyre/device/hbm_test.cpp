#include "spyre/device/hbm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace spyre {
namespace {

std::unique_ptr<Hbm> reserve(const Machine& machine, Fence fence) {
  return std::move(Hbm::reserve(machine, fence)).value();
}

std::byte peek(const volatile std::byte* place) {
  return *place;
}

void fill(Hbm& hbm, DeviceRange range) {
  const auto window = hbm.open(range);
  std::memset(window.value().bytes().data(), 1, window.value().bytes().size());
}

class FenceDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FenceDeathTest, DereferencingATokenFaults) {
  const auto hbm = reserve(toy_card(), Fence::kOpen);
  const auto* token = static_cast<const std::byte*>(hbm->token(DeviceAddress(128)));
  EXPECT_DEATH((void)peek(token), "");
}

TEST_F(FenceDeathTest, BehindAStrictFenceASpanDiesWithItsWindow) {
  const auto hbm = reserve(toy_card(), Fence::kStrict);
  std::span<std::byte> kept;
  {
    const auto window = hbm->open({DeviceAddress(128), Bytes(128)});
    kept = window.value().bytes();
    kept[0] = std::byte{7};
    EXPECT_EQ(peek(kept.data()), std::byte{7});
  }
  EXPECT_DEATH((void)peek(kept.data()), "");
}

TEST_F(FenceDeathTest, ThePagesBesideAWindowStayShut) {
  const auto hbm = reserve(toy_card(), Fence::kStrict);
  const auto window = hbm->open({DeviceAddress(4096), Bytes(4096)});
  const std::byte* inside = window.value().bytes().data();
  EXPECT_EQ(peek(inside), std::byte{0});
  EXPECT_DEATH((void)peek(inside + 4096), "");
  EXPECT_DEATH((void)peek(inside - 1), "");
}

TEST(Fence, APageStaysOpenUntilItsLastWindowShuts) {
  // pages   |  0  |  1  |  2  |  3  |
  // first   |-----------------|          second   |------------|
  const auto hbm = reserve(toy_card(), Fence::kStrict);
  auto first = hbm->open({DeviceAddress(0), Bytes(3 * 4096)});
  auto second = hbm->open({DeviceAddress(4096), Bytes(3 * 4096)});
  { const HostWindow shut = std::move(first).value(); }
  for (std::byte& b : second.value().bytes()) {
    b = std::byte{1};  // would fault on pages 1 and 2 if the first window had taken them along
  }
  EXPECT_EQ(second.value().bytes()[3 * 4096 - 1], std::byte{1});
}

TEST(Hbm, ReservingACardCostsNothingAndTouchingItDoes) {
  const auto hbm = reserve(spyre_card(), Fence::kOpen);
  EXPECT_EQ(hbm->size(), gibibytes(128));
  EXPECT_EQ(hbm->resident(), Bytes(0));
  fill(*hbm, {DeviceAddress(0) + gibibytes(100), mebibytes(8)});
  EXPECT_GE(hbm->resident(), mebibytes(8));
  EXPECT_LE(hbm->resident(), mebibytes(12));  // at most one huge page more at each end
  hbm->discard({DeviceAddress(0) + gibibytes(100), mebibytes(8)});
  EXPECT_LE(hbm->resident(), mebibytes(4));
}

TEST(Hbm, TwoCardsNeverShareATokenOrAByte) {
  const auto one = reserve(toy_card(), Fence::kOpen);
  const auto two = reserve(toy_card(), Fence::kOpen);
  EXPECT_EQ(one->address_of(two->token(DeviceAddress(0))), std::nullopt);
  fill(*one, {DeviceAddress(0), Bytes(128)});
  EXPECT_EQ(two->open({DeviceAddress(0), Bytes(1)}).value().bytes()[0], std::byte{0});
}

}  // namespace
}  // namespace spyre
