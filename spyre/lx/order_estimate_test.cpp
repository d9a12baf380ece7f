#include "spyre/lx/order_estimate.h"

#include <gtest/gtest.h>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::Analysed;
using test::kTensor;

//   step         1   3   5   7
//   a            w       r        [1, 6)
//   b                w       r    [3, 8)      three steps together
class TwoBranches : public ::testing::Test {
 protected:
  const Analysed branches_{
      test::laid_out(test::elementwise("x=64; y=64; a = exp x; b = exp y; c = neg a; d = neg b"))};
};

TEST_F(TwoBranches, TogetherOneOfThemFindsNoRoom) {
  OrderEstimate estimate(branches_.analysis, kTensor);
  const OrderLoss loss = estimate.loss_of({0, 1, 2, 3});
  EXPECT_EQ(loss.off_chip, 2 * kTensor.count());  // a write and a read
  EXPECT_EQ(loss.overload, 3 * kTensor.count());
}

TEST_F(TwoBranches, OneAfterTheOtherBothDo) {
  OrderEstimate estimate(branches_.analysis, kTensor);
  EXPECT_EQ(estimate.loss_of({0, 2, 1, 3}), OrderLoss());
  EXPECT_GT(estimate.work(), 0);
}

TEST_F(TwoBranches, TheAnswerDoesNotDependOnWhatWasAskedBefore) {
  OrderEstimate estimate(branches_.analysis, kTensor), fresh(branches_.analysis, kTensor);
  estimate.loss_of({0, 2, 1, 3});
  EXPECT_EQ(estimate.loss_of({0, 1, 2, 3}), fresh.loss_of({0, 1, 2, 3}));
}

TEST(OrderEstimate, AResultThatTakesOverItsOperandNeedsNoMore) {
  const DeviceGraph chain = test::laid_out(test::elementwise("x=64; a = exp x; b = neg a; c = abs b"));
  const Analysed allowed(chain), forbidden(chain, MoveSet::all().without({Move::kTakeOverSlot}));
  EXPECT_EQ(OrderEstimate(allowed.analysis, kTensor).loss_of({0, 1, 2}), OrderLoss());
  EXPECT_GT(OrderEstimate(forbidden.analysis, kTensor).loss_of({0, 1, 2}).overload, 0);
}

}  // namespace
}  // namespace spyre::lx
