#include "spyre/passes/bundle/reorder_nodes.h"

#include <gmock/gmock.h>

#include "spyre/lx/kernel_time.h"
#include "spyre/passes/bundle/reorder/dependences.h"
#include "spyre/passes/test_graphs.h"

namespace spyre {
namespace {

using test::kTensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names(const DeviceGraph& graph) {
  std::vector<std::string> names;
  for (const DeviceNode& node : graph.nodes) names.push_back(node.name);
  return names;
}

Result<ReorderReport> reordered(DeviceGraph& graph, const lx::PlannerOptions& options) {
  lx::Planner planner(options);
  return reorder_nodes(graph, planner);
}

TEST(Dependences, AValueIsReadAfterItIsMade) {
  const DeviceGraph graph =
      parse_device_graph(test::elementwise("x=4; a = exp x; b = neg x; c = add a b")).value();
  const Dependences dependences = dependences_of(graph);
  EXPECT_THAT(dependences.before[1], IsEmpty());
  EXPECT_THAT(dependences.before[2], ElementsAre(0, 1));
  EXPECT_TRUE(keeps(dependences, {1, 0, 2}));
  EXPECT_FALSE(keeps(dependences, {0, 2, 1}));
}

// b stores into the input y. Readers of y stay on their side of it, and so do those of x: they may be one
// memory.
TEST(Dependences, AMutationStaysBetweenWhatTouchesInputs) {
  const DeviceGraph graph = parse_device_graph(R"(graph g {
    input x : float16[4, 64] stride=[64, 1]
    input y : float16[4, 64] stride=[64, 1]
    buffer a : float16[4, 64] stride=[64, 1]
    buffer c : float16[4, 64] stride=[64, 1]
    buffer d : float16[4, 64] stride=[64, 1]
    node a (p0: 4, p1: 64) {
      v0 = load y[64*p0 + p1]
      v1 = exp v0
      store a[64*p0 + p1] v1
    }
    node b (p0: 4, p1: 64) {
      v0 = load a[64*p0 + p1]
      v1 = neg v0
      store y[64*p0 + p1] v1
    }
    node c (p0: 4, p1: 64) {
      v0 = load x[64*p0 + p1]
      v1 = exp v0
      store c[64*p0 + p1] v1
    }
    node d (p0: 4, p1: 64) {
      v0 = load a[64*p0 + p1]
      v1 = exp v0
      store d[64*p0 + p1] v1
    }
    return c, d
  })")
                                .value();
  const Dependences dependences = dependences_of(graph);
  EXPECT_THAT(dependences.before[1], ElementsAre(0));
  EXPECT_THAT(dependences.before[2], ElementsAre(1));
  EXPECT_THAT(dependences.before[3], ElementsAre(0));
}

TEST(ReorderNodes, ReadersOfOneTensorMeetWhenThereIsRoomForOne) {
  DeviceGraph graph = test::divided(test::idle_once(), 1);
  const ReorderReport report = reordered(graph, {.capacity = kTensor}).value();
  EXPECT_EQ(report.before, kTensor * (3 + 7));  // with an eviction
  EXPECT_EQ(report.after, kTensor * (2 + 7));
  EXPECT_GT(report.moved, 0);
  EXPECT_TRUE(verify(graph).ok());
}

// Two branches that are begun together and finished one after the other.
TEST(ReorderNodes, ABranchIsFinishedBeforeTheNextIsBegun) {
  DeviceGraph graph = test::divided(
      test::elementwise("x=64; y=64; a = exp x; b = exp y; c = neg a; d = neg b; e = add a c; f = add b d"),
      1);
  const DeviceGraph program = graph;
  const ReorderReport report =
      reordered(graph, {.capacity = kTensor * 2, .moves = lx::MoveSet::all().without({lx::Move::kEvict})})
          .value();
  EXPECT_LT(report.after, report.before);
  EXPECT_EQ(report.after, kTensor * 4);  // x, y, e and f
  EXPECT_TRUE(keeps(dependences_of(program), [&] {
    std::vector<size_t> order;
    for (const std::string& name : names(graph)) {
      for (size_t i = 0; i < program.nodes.size(); ++i) {
        if (program.nodes[i].name == name) order.push_back(i);
      }
    }
    return order;
  }()));
}

TEST(ReorderNodes, TheProgramsOrderStaysWhereEverythingFits) {
  DeviceGraph graph = test::divided(test::idle_once(), 1);
  const DeviceGraph program = graph;
  const ReorderReport report = reordered(graph, {.capacity = kTensor * 2}).value();
  EXPECT_EQ(graph, program);
  EXPECT_EQ(report.evaluated, 0);
}

TEST(ReorderNodes, AskedForTimeKeepsAnOrderThatIsDoneEarlier) {
  const lx::PlannerOptions planning{.capacity = kTensor * 2,
                                    .moves = lx::MoveSet::all().without({lx::Move::kEvict})};
  const auto time_of = [&](DeviceGraph graph) {
    test::plan(graph, planning).value();
    return lx::kernel_time(graph).value();
  };
  const DeviceGraph program = test::divided(
      test::elementwise("x=64; y=64; a = exp x; b = exp y; c = neg a; d = neg b; e = add a c; f = add b d"),
      1);
  DeviceGraph graph = program;
  lx::Planner planner(planning);
  const ReorderReport report = reorder_nodes(graph, planner, {.objective = lx::Objective::kTime}).value();
  EXPECT_GT(report.moved, 0);
  EXPECT_LT(time_of(graph), time_of(program));
}

TEST(ReorderNodes, TheProgramsOrderStaysWhereNoOtherHelps) {
  // One chain: there is no other order.
  DeviceGraph graph =
      test::divided(test::elementwise("x=64; a = exp x; b = add a x; c = add b a; d = add c x"), 1);
  const DeviceGraph program = graph;
  const ReorderReport report = reordered(graph, {.capacity = kTensor}).value();
  EXPECT_EQ(graph, program);
  EXPECT_EQ(report.after, report.before);
  EXPECT_EQ(report.moved, 0);
}

TEST(ReorderNodes, GivesTheSameOrderEveryTime) {
  DeviceGraph first = test::divided(test::idle_once(), 1), second = first;
  ASSERT_TRUE(reordered(first, {.capacity = kTensor}).ok());
  ASSERT_TRUE(reordered(second, {.capacity = kTensor}).ok());
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace spyre
