#include "spyre/lx/analysis.h"

#include <gmock/gmock.h>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

TEST(Analysis, EqualViewsHaveOneAddress) {
  const test::Analysed four(test::laid_out(test::elementwise("x=64; a = exp x; b = neg a", 4)));
  const std::vector<TouchView>& views = four.analysis.views(four.id("a"));
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[0].view, views[1].view);
  EXPECT_EQ(views[0].view, four.analysis.intern(CoreView(*views[0].view)));
  EXPECT_EQ(views[0].moved.counted, test::kTensor);
  const test::Analysed disagree(test::laid_out(test::kRowsThenColumns));
  EXPECT_NE(disagree.analysis.views(1)[0].view, disagree.analysis.views(1)[1].view);
}

TEST(Analysis, KnowsWhatIsIneligibleHoweverWorkIsDivided) {
  const test::Analysed known(test::laid_out(test::elementwise("x=64; a = exp x; b = neg a")));
  EXPECT_EQ(known.analysis.ineligible(known.id("a")), "");
  EXPECT_EQ(known.analysis.ineligible(known.id("a"), 1), "");
  EXPECT_EQ(known.analysis.ineligible(known.id("b")), "graph output");
}

TEST(Analysis, ACopyIsPossibleBetweenDivisionsAndToDeviceMemoryWithoutSharing) {
  const test::Analysed disagree(test::laid_out(test::kRowsThenColumns));
  const BufferId a = disagree.id("a");
  const CoreView &rows = *disagree.analysis.views(a)[0].view, &columns = *disagree.analysis.views(a)[1].view;
  EXPECT_TRUE(disagree.analysis.can_copy(a, rows, columns));
  EXPECT_TRUE(disagree.analysis.can_copy(a, rows, rows));
  CoreView everywhere = rows;  // four cores that all hold the first part
  everywhere.first.assign(4, 0);
  const CoreView& shared = *disagree.analysis.intern(everywhere);
  EXPECT_FALSE(disagree.analysis.can_copy(a, shared, shared));
}

TEST(Analysis, ASpreadGivesEveryCoreAPartOfItsOwn) {
  const test::Analysed four(test::laid_out(test::elementwise("x=64; a = exp x; b = neg a", 4)));
  const CoreView* spread = four.analysis.spread(four.id("x"));
  ASSERT_NE(spread, nullptr);
  EXPECT_EQ(spread->cores(), 4);
  EXPECT_FALSE(spread->shared());
}

// The result of exp along another stick than its operand.
TEST(Analysis, RefusesWhatTheCardCannotRun) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x"));
  graph.buffers[1].layout->device_size = {64, 1, 64};
  graph.buffers[1].layout->stride_map = {1, 4096, 64};
  EXPECT_FALSE(Analysis::of(graph, MoveSet::all()).ok());
}

}  // namespace
}  // namespace spyre::lx
