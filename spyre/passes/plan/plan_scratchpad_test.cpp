#include "spyre/passes/plan/plan_scratchpad.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "spyre/base/json.h"
#include "spyre/passes/test_graphs.h"

namespace spyre {
namespace {

using lx::Move;
using lx::MoveSet;
using test::entry;
using test::kTensor;

using ::testing::StartsWith;

std::optional<BufferPlace> place_of(const DeviceGraph& graph, std::string_view name) {
  return graph.buffers[static_cast<size_t>(graph.find(name).value())].place;
}

// Device memory traffic of a graph on one core in elements: every operand that is not in LX moves once.
int64_t elements_moved(const DeviceGraph& graph) {
  int64_t elements = 0;
  const auto move = [&](BufferId id) {
    const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
    const bool in_lx = buffer.place && buffer.place->kind == BufferPlace::Kind::kLx;
    if (!in_lx) elements += buffer.layout->byte_size().value().count() / 2;
  };
  for (const DeviceNode& node : graph.nodes) {
    for_each_access(node.op, [&](const Access& access) { move(access.buffer); });
  }
  return elements;
}

// The four published stages of the softmax over axis 0 of 512 x 1024 on one core.
class SoftmaxStages : public ::testing::Test {
 protected:
  static constexpr int64_t M = 512, N = 1024;
  DeviceGraph graph_ = test::divided(test::column_softmax(M, N), 1);
};

TEST_F(SoftmaxStages, WithoutLxEightPassesAndFourVectors) {
  EXPECT_EQ(elements_moved(graph_), 8 * M * N + 4 * N);
}

TEST_F(SoftmaxStages, VectorsAloneFitInASmallLx) {
  const lx::Plan plan = test::plan(graph_, {.capacity = Bytes(4096)}).value();
  EXPECT_EQ(elements_moved(graph_), 8 * M * N);
  EXPECT_EQ(entry(plan, "d").reason, "capacity");
}

TEST_F(SoftmaxStages, InPlaceLeavesInputAndOutput) {
  const lx::Plan plan = test::plan(graph_, {.moves = MoveSet::all().without({Move::kCopyIn})}).value();
  EXPECT_EQ(elements_moved(graph_), 3 * M * N);
  EXPECT_EQ(entry(plan, "e").in_place_of, "d");
  EXPECT_EQ(entry(plan, "x").reason, "graph input");
  EXPECT_EQ(entry(plan, "y").reason, "graph output");
}

TEST_F(SoftmaxStages, ACloneOfTheInputLeavesTwoPasses) {
  const lx::Plan plan = test::plan(graph_).value();
  EXPECT_EQ(elements_moved(graph_), 2 * M * N);
  EXPECT_TRUE(entry(plan, "x").clone);
  EXPECT_EQ(entry(plan, "d").in_place_of, "x");
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.saved(), Bytes((6 * M * N + 4 * N) * 2));
  EXPECT_TRUE(verify(graph_).ok());
}

TEST_F(SoftmaxStages, WithoutInPlaceOnlyOneMatrixFits) {
  test::plan(graph_, {.moves = MoveSet::all().without({Move::kTakeOverSlot, Move::kCopyIn})}).value();
  EXPECT_EQ(elements_moved(graph_), 5 * M * N);  // e: one write and two reads less
}

TEST(PlanScratchpad, EverySolverGivesALegalPlan) {
  for (const char* solver :
       {"greedy", "firstfit", "bestfit", "simulated_annealing", "cpsat", "exact", "portfolio"}) {
    DeviceGraph graph = test::divided(test::column_softmax(64, 128), 1);
    EXPECT_TRUE(test::plan(graph, {.solver = solver}).ok()) << solver;
  }
}

TEST(PlanScratchpad, AnUnknownSolverIsRefused) {
  DeviceGraph graph = test::divided(test::column_softmax(64, 128), 1);
  EXPECT_FALSE(test::plan(graph, {.solver = "oracle"}).ok());
}

// 512 rows and 16 sticks on 32 cores: the reductions take 16 x 2, the rest rows / 32.
TEST(PlanScratchpad, CoresThatDisagreePassBuffersOverTheRing) {
  DeviceGraph graph = test::divided(test::column_softmax(512, 1024), 32);
  const lx::Plan plan = test::plan(graph).value();
  EXPECT_EQ(entry(plan, "e#1").copy_of, "e");
  EXPECT_EQ(entry(plan, "e#1").per_core, Bytes(512 * 1024 * 2 / 32));
  EXPECT_EQ(entry(plan, "d").per_core, Bytes(512 * 1024 * 2 / 32));
  EXPECT_EQ(plan.saved(), plan.at_stake());
  EXPECT_TRUE(verify(graph).ok());
  const auto shuffles = std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                      [](const DeviceNode& node) { return node.op.op == OpId::shuffle; });
  EXPECT_EQ(shuffles, 4);  // x, m, e and s, each once
}

TEST(PlanScratchpad, CoresThatDisagreeMeetInDeviceMemoryWithoutTheRing) {
  DeviceGraph graph = test::divided(test::column_softmax(512, 1024), 32);
  const lx::Plan plan = test::plan(graph, {.moves = MoveSet::all().without({Move::kShuffle})}).value();
  EXPECT_THAT(entry(plan, "m").reason, StartsWith("core division mismatch"));
  EXPECT_EQ(place_of(graph, "d"), (BufferPlace{BufferPlace::Kind::kLx, 0}));
}

TEST(PlanScratchpad, AResultAndAnInputReadOnceStayWhereTheyAre) {
  DeviceGraph graph = test::divided(R"(graph g {
    input x : float16[4, 64] stride=[64, 1]
    buffer y : float16[4, 64] stride=[64, 1]
    node y (p0: 4, p1: 64) {
      v0 = load x[64*p0 + p1]
      v1 = neg v0
      store y[64*p0 + p1] v1
    }
    return y
  })",
                                    4);
  const DeviceGraph before = graph;
  const lx::Plan plan = test::plan(graph).value();
  EXPECT_EQ(graph, before);
  EXPECT_EQ(entry(plan, "x").reason, "graph input, read once");
  EXPECT_EQ(entry(plan, "y").reason, "graph output");
}

TEST(PlanScratchpad, APieceOfWhatACoreHoldsIsReadInLx) {
  DeviceGraph graph = test::divided(R"(graph g {
    input x : float16[4, 128] stride=[128, 1]
    buffer t : float16[4, 128] stride=[128, 1]
    buffer y : float16[4, 64] stride=[64, 1]
    node t (p0: 4, p1: 128) {
      v0 = load x[128*p0 + p1]
      v1 = exp v0
      store t[128*p0 + p1] v1
    }
    node y (p0: 4, p1: 64) {
      v0 = load t[128*p0 + p1 + 64]
      v1 = neg v0
      store y[64*p0 + p1] v1
    }
    return y
  })",
                                    4);
  EXPECT_TRUE(entry(test::plan(graph).value(), "t").address.has_value());
}

TEST(PlanScratchpad, ThePlanNamesMakersReadersAndTheBound) {
  DeviceGraph graph = test::divided(test::column_softmax(64, 64), 1);
  const lx::Plan plan = test::plan(graph).value();
  EXPECT_EQ(plan.most_saved(), plan.saved());
  const Json facts = plan.to_json();
  EXPECT_EQ(facts["bound"], plan.saved().count());
  const Json& e = facts["buffers"][3];
  EXPECT_EQ(e["buffer"], "e");
  EXPECT_EQ(e["made_by"], Json({"e"}));
  EXPECT_EQ(e["read_by"], Json({"s", "y"}));
  EXPECT_EQ(e["remark"], "in place of d");
  EXPECT_EQ(e["live"], Json({5, 10}));  // node 2 at step 5, node 4 at step 9
}

// With half the room of one matrix only vectors fit, and the bound says that no solver could do better.
TEST(PlanScratchpad, TheBoundKnowsWhatNeverFits) {
  DeviceGraph graph = test::divided(test::column_softmax(64, 64), 1);
  const lx::Plan plan = test::plan(graph, {.capacity = Bytes(4096)}).value();
  EXPECT_LT(plan.saved(), plan.at_stake());
  EXPECT_GE(plan.most_saved(), plan.saved());
  EXPECT_LT(plan.most_saved(), plan.at_stake());
}

TEST(Eviction, AnInputIsFetchedTwiceWhenThatLeavesRoomBetween) {
  DeviceGraph graph = test::divided(test::idle_once(), 1);
  const lx::Plan plan = test::plan(graph, {.capacity = kTensor}).value();
  EXPECT_EQ(entry(plan, "A").evicted_after, 1);
  EXPECT_EQ(entry(plan, "A@2").reloaded_before, 5);
  EXPECT_EQ(entry(plan, "A@2").part_of, "A");
  EXPECT_EQ(entry(plan, "A@2").pays, kTensor);
  EXPECT_TRUE(entry(plan, "B").clone);
  EXPECT_EQ(plan.saved(), kTensor * 4);  // of two, three and two reads one each is left
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(elements_moved(graph), (3 + 7) * kTensor.count() / 2);
  EXPECT_TRUE(verify(graph).ok());
  const Json rows = plan.to_json()["buffers"];
  const auto again =
      std::find_if(rows.begin(), rows.end(), [](const Json& row) { return row["buffer"] == "A@2"; });
  EXPECT_EQ((*again)["remark"], "reloaded before c6, costs 8192 B, saves 8192 B");
}

TEST(Eviction, SwitchedOffABufferKeepsItsPlace) {
  DeviceGraph graph = test::divided(test::idle_once(), 1);
  const lx::Plan plan =
      test::plan(graph, {.capacity = kTensor, .moves = MoveSet::all().without({Move::kEvict})}).value();
  EXPECT_FALSE(entry(plan, "A").evicted_after.has_value());
  EXPECT_EQ(plan.saved(), kTensor * 3);
  EXPECT_EQ(entry(plan, "B").reason, "no room on scratchpad");
}

TEST(Eviction, AResultIsCopiedOutAndFetchedAgain) {
  DeviceGraph graph = test::divided(test::made_then_idle(), 1);
  const lx::Plan plan = test::plan(graph, {.capacity = kTensor}).value();
  EXPECT_TRUE(entry(plan, "A").copied_out);
  EXPECT_EQ(entry(plan, "A").evicted_after, 2);
  EXPECT_EQ(entry(plan, "A@2").reloaded_before, 7);
  // x once, A out and in once, B once, and eight results; without eviction B four times and A never.
  EXPECT_EQ(elements_moved(graph), (1 + 2 + 1 + 8) * kTensor.count() / 2);
  DeviceGraph other = test::divided(test::made_then_idle(), 1);
  test::plan(other, {.capacity = kTensor, .moves = MoveSet::all().without({Move::kEvict})}).value();
  EXPECT_EQ(elements_moved(other), (1 + 4 + 8) * kTensor.count() / 2);
}

TEST(Eviction, DoesNotHappenWhereThereIsRoom) {
  DeviceGraph graph = test::divided(test::idle_once(), 1);
  const lx::Plan plan = test::plan(graph, {.capacity = kTensor * 2}).value();
  EXPECT_FALSE(entry(plan, "A").evicted_after.has_value());
  EXPECT_EQ(plan.saved(), plan.at_stake());
}

// An idle gap is no reason to give a place up that nobody needs, nor to fetch for one
// reader.
TEST(Eviction, DoesNotHappenWhereItSavesNothing) {
  DeviceGraph graph = test::divided(
      test::elementwise("A=64; B=64; c1 = exp A; c2 = neg A; c3 = exp B; c4 = neg B; c5 = relu A"), 1);
  const lx::Plan plan = test::plan(graph, {.capacity = kTensor}).value();
  EXPECT_EQ(plan.saved(), kTensor * 2);
  EXPECT_FALSE(entry(plan, "A").evicted_after.has_value());
}

TEST(Eviction, TensorsTakeTurnsBesideALargerOne) {
  DeviceGraph graph = test::divided(test::takes_turns(), 1);
  test::plan(graph, {.capacity = kTensor * 3}).value();
  // Fetched: A0 once, A1 and A2 twice, B, which is two tensors large, once. Written: what is left of 15
  // nodes.
  const int64_t written = 3 + 3 * (2 + 2 * 2);
  EXPECT_EQ(elements_moved(graph), (1 + 2 + 2 + 2 + written) * kTensor.count() / 2);
  DeviceGraph other = test::divided(test::takes_turns(), 1);
  test::plan(other, {.capacity = kTensor * 3, .moves = MoveSet::all().without({Move::kEvict})}).value();
  EXPECT_EQ(elements_moved(other), (11 + written) * kTensor.count() / 2);
}

TEST(Eviction, EverySolverGivesALegalPlan) {
  for (const std::string& text : {test::idle_once(), test::made_then_idle(), test::takes_turns()}) {
    Bytes best, last;
    for (const char* solver :
         {"greedy", "firstfit", "bestfit", "simulated_annealing", "exact", "portfolio"}) {
      DeviceGraph graph = test::divided(text, 4);
      const lx::Plan plan = test::plan(graph, {.capacity = kTensor / 4, .solver = solver}).value();
      EXPECT_TRUE(verify(graph).ok()) << solver;
      best = std::max(best, plan.saved());
      last = plan.saved();
    }
    EXPECT_EQ(last, best) << "the portfolio saves less than another";
  }
}

}  // namespace
}  // namespace spyre
