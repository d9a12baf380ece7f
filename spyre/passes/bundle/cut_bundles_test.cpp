#include "spyre/passes/bundle/cut_bundles.h"

#include <gmock/gmock.h>

#include "spyre/base/json.h"
#include "spyre/passes/test_graphs.h"

namespace spyre {
namespace {

using test::entry;

using testing::ElementsAre;

// m, d, e, s, y: max, subtract, exponential, sum, divide.
DeviceGraph softmax_of_two_operations() {
  DeviceGraph graph = test::divided(test::column_softmax(128, 256), 1);
  cut_bundles(graph, 2);
  return graph;
}

std::vector<int64_t> bundles_of(const DeviceGraph& graph) {
  std::vector<int64_t> bundles;
  for (const DeviceNode& node : graph.nodes) bundles.push_back(node.bundle);
  return bundles;
}

TEST(CutBundles, CountsOperationsAndLeavesTheRestToTheLast) {
  DeviceGraph graph = softmax_of_two_operations();
  EXPECT_THAT(bundles_of(graph), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_TRUE(verify(graph).ok());
  cut_bundles(graph, 0);
  EXPECT_THAT(bundles_of(graph), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ(bundle_count(graph), 1);
}

TEST(CutBundles, BundlesPrintAndReadBack) {
  const DeviceGraph graph = softmax_of_two_operations();
  EXPECT_EQ(parse_device_graph(to_text(graph)).value(), graph);
}

TEST(CutBundles, BundlesOutOfOrderAreRefused) {
  DeviceGraph graph = softmax_of_two_operations();
  std::swap(graph.nodes[1].bundle, graph.nodes[2].bundle);
  EXPECT_THAT(verify(graph).error().message, testing::HasSubstr("node 'e': is in bundle 0 after bundle 1"));
}

TEST(CutBundles, OnePlanSpansAllBundlesAndMarksWhatItCrosses) {
  DeviceGraph whole = test::divided(test::column_softmax(128, 256), 1);
  DeviceGraph cut = softmax_of_two_operations();
  const lx::Plan plan = test::plan(cut).value();
  EXPECT_EQ(plan.to_json(), test::plan(whole).value().to_json());
  // x_lx is copied in before m; d crosses the first cut, e and s the second.
  EXPECT_THAT(bundles_of(cut), ElementsAre(0, 0, 0, 1, 1, 2));
  EXPECT_THAT(non_terminal_bundles(cut), ElementsAre(true, true, false));
  EXPECT_TRUE(verify(cut).ok());
}

TEST(CutBundles, WithoutMarksNothingStaysInLxAcrossACut) {
  DeviceGraph graph = softmax_of_two_operations();
  const lx::Plan plan =
      test::plan(graph, {.moves = lx::MoveSet::all().without({lx::Move::kCrossBundles})}).value();
  EXPECT_THAT(non_terminal_bundles(graph), ElementsAre(false, false, false));
  // m is made and read in the first bundle; d is made there and read in the second only.
  EXPECT_TRUE(entry(plan, "m").address.has_value());
  EXPECT_FALSE(entry(plan, "d").address.has_value());
  EXPECT_EQ(entry(plan, "d").reason, "read in another bundle by 'e'");
  // e is read by s beside it and by y later: made in LX, copied out at the end of its bundle.
  EXPECT_TRUE(entry(plan, "e").copied_out);
  EXPECT_EQ(entry(plan, "e").reason, "read in another bundle by 'y'");
  EXPECT_EQ(entry(plan, "s").reason, "read in another bundle by 'y'");
  // The input is read twice in the first bundle, so it is fetched once.
  EXPECT_TRUE(entry(plan, "x").clone);
  EXPECT_THAT(bundles_of(graph), ElementsAre(0, 0, 0, 1, 1, 1, 2));
  EXPECT_TRUE(verify(graph).ok());
}

}  // namespace
}  // namespace spyre
