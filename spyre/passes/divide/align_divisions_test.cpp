#include "spyre/passes/divide/align_divisions.h"

#include <gmock/gmock.h>

#include "spyre/passes/test_graphs.h"

namespace spyre {
namespace {

Loop& loop(DeviceGraph& graph, std::string_view node, std::string_view name) {
  for (DeviceNode& n : graph.nodes) {
    for (Loop& l : n.loops) {
      if (n.name == node && l.name == name) return l;
    }
  }
  throw std::runtime_error("no such loop");
}

// t = exp x; y = -t over [8, 128]: two loops that divide as told.
DeviceGraph chain() {
  return test::divided(R"(graph g {
    input x : float16[8, 128] stride=[128, 1]
    buffer t : float16[8, 128] stride=[128, 1]
    buffer y : float16[8, 128] stride=[128, 1]
    node t (p0: 8, p1: 128) {
      v0 = load x[128*p0 + p1]
      v1 = exp v0
      store t[128*p0 + p1] v1
    }
    node y (p0: 8, p1: 128) {
      v0 = load t[128*p0 + p1]
      v1 = neg v0
      store y[128*p0 + p1] v1
    }
    return y
  })",
                       4);
}

bool in_lx(const DeviceGraph& graph, std::string_view name) {
  const auto& place = graph.buffers[static_cast<size_t>(graph.find(name).value())].place;
  return place && place->kind == BufferPlace::Kind::kLx;
}

TEST(AlignDivisions, AReaderFollowsItsWriter) {
  DeviceGraph graph = chain();
  loop(graph, "t", "p0").split = 2;
  loop(graph, "t", "p1").split = 2;
  ASSERT_EQ(loop(graph, "y", "p0").split, 4);
  ASSERT_TRUE(align_divisions(graph, 4).ok());
  EXPECT_EQ(loop(graph, "y", "p0").split, 2);
  EXPECT_EQ(loop(graph, "y", "p1").split, 2);
  ASSERT_TRUE(test::plan(graph).ok());
  EXPECT_TRUE(in_lx(graph, "t"));
}

TEST(AlignDivisions, ItFollowsAlsoTheOrderOfCores) {
  DeviceGraph graph = chain();
  loop(graph, "t", "p0") = {.name = "p0", .extent = 8, .split = 2, .step = 2};
  loop(graph, "t", "p1") = {.name = "p1", .extent = 128, .split = 2, .step = 1};
  ASSERT_TRUE(align_divisions(graph, 4).ok());
  EXPECT_EQ(loop(graph, "y", "p0").step, 2);
  ASSERT_TRUE(test::plan(graph).ok());
  EXPECT_TRUE(in_lx(graph, "t"));
}

TEST(AlignDivisions, NoCoreIsGivenUp) {
  DeviceGraph graph = chain();
  loop(graph, "t", "p0").split = 2;
  const DeviceGraph before = graph;
  ASSERT_TRUE(align_divisions(graph, 4).ok());
  EXPECT_EQ(graph, before);
}

TEST(AlignDivisions, HintsStand) {
  DeviceGraph graph = chain();
  loop(graph, "t", "p0").split = 2;
  loop(graph, "t", "p1").split = 2;
  graph.nodes[1].hints = {{"p0", 4}};
  const DeviceGraph before = graph;
  ASSERT_TRUE(align_divisions(graph, 4).ok());
  EXPECT_EQ(graph, before);
}

// The sum over rows takes 16 x 2; following its rows / 32 producer would change the order of the sum.
TEST(AlignDivisions, SplitReductionsStand) {
  DeviceGraph graph = test::divided(test::column_softmax(512, 1024), 32);
  ASSERT_EQ(loop(graph, "s", "r0").split, 2);
  const DeviceGraph before = graph;
  ASSERT_TRUE(align_divisions(graph, 32).ok());
  EXPECT_EQ(graph, before);
}

}  // namespace
}  // namespace spyre
