#include "spyre/runtime/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace spyre {
namespace {

std::vector<std::byte> counting_up(size_t n) {
  std::vector<std::byte> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::byte>(i % 251);
  }
  return out;
}

TEST(Runtime, BytesSurviveTheTripToTheCardAndBack) {
  Runtime runtime(toy_card(), Fence::kStrict);
  Card& card = *runtime.card(0).value();
  const MemoryRef memory = card.allocate(Bytes(391)).value();  // three sticks and seven bytes
  const StreamRef stream = card.streams().next(0);
  const auto sent = counting_up(391);
  std::vector<std::byte> received(391);
  ASSERT_TRUE(copy_in(stream, MemoryView::whole(memory), sent, Blocking::kNo).ok());
  ASSERT_TRUE(copy_out(stream, MemoryView::whole(memory), received, Blocking::kYes).ok());
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace spyre
