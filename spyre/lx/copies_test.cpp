#include "spyre/lx/copies.h"

#include <gmock/gmock.h>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::Analysed;

class Copies : public ::testing::Test {
 protected:
  const Analysed disagree_{test::laid_out(test::kRowsThenColumns)};
  const GraphAccess& access_ = disagree_.analysis.access();
  const BufferId a_ = disagree_.id("a");
  const CoreView& rows_ = *disagree_.analysis.views(a_)[0].view;
  const CoreView& columns_ = *disagree_.analysis.views(a_)[1].view;
  const BufferTouch* basis_ = whole_touch(disagree_.graph, access_, a_);
};

TEST_F(Copies, AreMadeAlongATouchOfTheWholeBuffer) {
  ASSERT_NE(basis_, nullptr);
  EXPECT_EQ(basis_->node, 0u);
}

TEST(Copy, APartOfABufferIsNoBasis) {
  const DeviceGraph graph = test::laid_out(test::kLeftHalf);
  EXPECT_EQ(whole_touch(graph, access_of(graph).value(), graph.find("x").value()), nullptr);
}

TEST_F(Copies, WithOneViewEveryCoreCopiesItsPart) {
  const auto node = divided_copy(disagree_.graph, access_, *basis_, a_, disagree_.id("b"), rows_, rows_);
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->op.op, OpId::identity);
  EXPECT_EQ(node->loops[0].split, 4);
  EXPECT_EQ(node->loops[1].split, 1);
}

TEST_F(Copies, WithTwoViewsTheRingBringsThePartsOver) {
  const auto node = divided_copy(disagree_.graph, access_, *basis_, a_, disagree_.id("b"), rows_, columns_);
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->op.op, OpId::shuffle);
  EXPECT_EQ(node->loops[0].split, 4);
  EXPECT_EQ(node->loops[0].to_split, 1);
  EXPECT_EQ(node->loops[1].split, 1);
  EXPECT_EQ(node->loops[1].to_split, 4);
}

TEST_F(Copies, PartsThatCoresShareAreNotCopiedToDeviceMemory) {
  CoreView shared = rows_;
  shared.first.assign(4, 0);
  EXPECT_FALSE(
      divided_copy(disagree_.graph, access_, *basis_, a_, disagree_.id("b"), shared, shared).has_value());
}

TEST_F(Copies, ASpreadUsesAsManyCoresAsAskedOrNone) {
  const auto eight = spread_view(disagree_.graph, access_, *basis_, a_, 8);
  ASSERT_TRUE(eight.has_value());
  EXPECT_EQ(eight->parts(), 8);
  EXPECT_FALSE(spread_view(disagree_.graph, access_, *basis_, a_, 7).has_value());  // 64 rows, 4 sticks
}

}  // namespace
}  // namespace spyre::lx
