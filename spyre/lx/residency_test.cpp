#include "spyre/lx/residency.h"

#include <gmock/gmock.h>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::Analysed;
using test::kTensor;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(Residency, ReadersDividedAsTheWriterReadLx) {
  const Analysed four(test::laid_out(test::elementwise("x=64; a = exp x; b = neg a; c = abs a", 4)));
  const Residency a = four.residency("a");
  EXPECT_EQ(a.ineligible, "");
  EXPECT_THAT(a.direct, SizeIs(3));
  EXPECT_EQ(a.per_core, kTensor / 4);
  EXPECT_EQ(a.saves, kTensor * 3);  // one write and two reads
  EXPECT_EQ(a.pays, Bytes(0));
}

TEST(Residency, AnInputPaysOneFetch) {
  const Analysed twice(test::laid_out(test::elementwise("x=64; a = exp x; b = neg x")));
  EXPECT_TRUE(twice.residency("x").clone);
  EXPECT_EQ(twice.residency("x").saves, kTensor);
  EXPECT_EQ(twice.residency("x").pays, kTensor);
  const Analysed once(test::laid_out(test::elementwise("x=64; a = exp x; b = neg a")));
  EXPECT_EQ(once.residency("x").ineligible, "graph input, read once");
}

TEST(Residency, AResultThatIsReadIsCopiedOut) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = neg a; c = abs a"));
  graph.results.push_back(graph.find("a").value());
  const Analysed read(std::move(graph));
  const Residency a = read.residency("a");
  EXPECT_TRUE(a.copied_out);
  EXPECT_EQ(a.saves, kTensor * 2);
  EXPECT_EQ(a.pays, kTensor);
}

TEST(Residency, ReadersDividedOtherwiseAreServedOverTheRing) {
  const Analysed disagree(test::laid_out(test::kRowsThenColumns));
  const Residency a = disagree.residency("a");
  ASSERT_THAT(a.relayouts, SizeIs(1));
  EXPECT_EQ(a.relayouts[0].view, *disagree.analysis.views(disagree.id("a"))[1].view);
  EXPECT_EQ(a.relayouts[0].per_core, kTensor);  // 64 x 256 over four cores
  EXPECT_EQ(a.saves, kTensor * 4 * 2);
}

TEST(Residency, WithoutAShuffleDivisionsThatDisagreeMeetInDeviceMemory) {
  const Analysed forbidden(test::laid_out(test::kRowsThenColumns), MoveSet::all().without({Move::kShuffle}));
  EXPECT_THAT(forbidden.residency("a").ineligible, StartsWith("core division mismatch: "));
  // The same when a request leaves these readers off the ring.
  const Analysed disagree(test::laid_out(test::kRowsThenColumns));
  const CoreView* columns = disagree.analysis.views(disagree.id("a"))[1].view;
  EXPECT_THAT(disagree.residency("a", {.off_ring = {columns}}).ineligible,
              StartsWith("core division mismatch: "));
}

TEST(Residency, AReaderThatCannotReadLxDoesNotHoldUpTheOthers) {
  DeviceGraph graph = test::laid_out(test::kRowsThenColumns);
  DeviceNode third = graph.nodes[0];  // a by rows once more, as the writer is
  const BufferId c = graph.add_buffer(graph.buffers[2]);
  third.name = graph.buffers[static_cast<size_t>(c)].name;
  third.op.inputs[0].buffer = 1;
  third.op.output.buffer = c;
  graph.nodes.push_back(third);
  graph.results.push_back(c);
  const Analysed mixed(std::move(graph), MoveSet::all().without({Move::kShuffle}));
  const Residency a = mixed.residency("a");
  EXPECT_EQ(a.ineligible, "");
  EXPECT_THAT(a.direct, SizeIs(2));
  EXPECT_THAT(a.off_chip, SizeIs(1));
  EXPECT_TRUE(a.copied_out);
  EXPECT_EQ(a.saves, kTensor * 4);
}

// touches of a    w r r . r r      nodes 0, 1, 2, 4, 5
class Segments : public ::testing::Test {
 protected:
  const Analysed idle_{test::laid_out(
      test::elementwise("x=64; y=64; a = exp x; b = neg a; c = abs a; d = exp y; e = neg a; f = abs a"))};
};

TEST_F(Segments, TheFirstIsMadeInLxAndCopiedOut) {
  const Residency first = idle_.residency("a", {.first = 0, .last = 2});
  EXPECT_FALSE(first.clone);
  EXPECT_TRUE(first.copied_out);
  EXPECT_EQ(first.saves, kTensor * 2);
  // DeviceNode 0 runs at step 1, node 2 at 5.
  EXPECT_EQ(life_of(first), (solve::Lifetime{solve::Step(1), solve::Step(6)}));
}

TEST_F(Segments, ALaterOneIsFetchedJustBeforeItsFirstReader) {
  const Residency later = idle_.residency("a", {.first = 3, .last = 4});
  EXPECT_TRUE(later.clone);
  EXPECT_FALSE(later.copied_out);
  EXPECT_EQ(later.saves, kTensor);
  EXPECT_EQ(life_of(later), (solve::Lifetime{solve::Step(8), solve::Step(12)}));
}

TEST_F(Segments, OneReaderIsNotWorthAFetch) {
  EXPECT_EQ(idle_.residency("a", {.first = 4, .last = 4}).ineligible, "graph input, read once");
}

TEST_F(Segments, TheWholeLiveRangeNeedsNoCopy) {
  const Residency whole = idle_.residency("a");
  EXPECT_FALSE(whole.clone || whole.copied_out);
  EXPECT_EQ(whole.saves, kTensor * 5);
  EXPECT_EQ(life_of(whole), (solve::Lifetime{solve::Step(1), solve::Step(12)}));
}

TEST(Residency, LxThatIsWipedServesOneBundle) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = neg a; c = abs a"));
  graph.nodes[2].bundle = 1;
  const Analysed kept(graph);
  EXPECT_THAT(kept.residency("a").off_chip, IsEmpty());
  const Analysed wiped(graph, MoveSet::all().without({Move::kCrossBundles}));
  const Residency a = wiped.residency("a");
  EXPECT_THAT(a.off_chip, SizeIs(1));
  EXPECT_EQ(a.why_off_chip, "read in another bundle by 'c'");
  EXPECT_TRUE(a.copied_out);
}

}  // namespace
}  // namespace spyre::lx
