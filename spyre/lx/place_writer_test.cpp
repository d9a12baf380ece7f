#include "spyre/lx/place_writer.h"

#include <gmock/gmock.h>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::kTensor;
using ::testing::ElementsAre;

// Places the buffers that are named, at these addresses; the others stay in device memory.
DeviceGraph placed(DeviceGraph graph, const std::vector<std::pair<std::string, int64_t>>& addresses,
                   bool full = false) {
  const Analysis analysis = Analysis::of(graph, MoveSet::all()).value();
  const AllocationProblem allocation = allocation_problem(analysis, {.capacity = kTensor * 8, .full = full});
  solve::Placement placement;
  for (const solve::Buffer& buffer : allocation.problem.buffers) {
    placement.offset.emplace_back();
    for (const auto& [name, address] : addresses) {
      if (buffer.name == name) placement.offset.back() = Bytes(address);
    }
  }
  write_places(graph, analysis.access(), allocation, placement);
  EXPECT_TRUE(verify(graph).ok());
  return graph;
}

std::vector<std::string> node_names(const DeviceGraph& graph) {
  std::vector<std::string> names;
  for (const DeviceNode& node : graph.nodes) names.push_back(node.name);
  return names;
}

std::optional<BufferPlace> place_of(const DeviceGraph& graph, std::string_view name) {
  return graph.buffers[static_cast<size_t>(graph.find(name).value())].place;
}

constexpr BufferPlace lx_at(int64_t address) {
  return {BufferPlace::Kind::kLx, address};
}

TEST(PlaceWriter, ABufferThatOnlyLxNeedsJustMoves) {
  const DeviceGraph graph =
      placed(test::laid_out(test::elementwise("x=64; a = exp x; b = neg a")), {{"a", 256}});
  EXPECT_THAT(node_names(graph), ElementsAre("a", "b"));
  EXPECT_EQ(place_of(graph, "a"), lx_at(256));
  EXPECT_EQ(place_of(graph, "b"), std::nullopt);
}

TEST(PlaceWriter, AnInputIsCopiedBeforeItsFirstReader) {
  const DeviceGraph graph =
      placed(test::laid_out(test::elementwise("x=64; y=64; a = exp y; b = neg x; c = abs x")), {{"x", 0}});
  EXPECT_THAT(node_names(graph), ElementsAre("a", "x_lx", "b", "c"));
  EXPECT_EQ(place_of(graph, "x"), std::nullopt);
  EXPECT_EQ(place_of(graph, "x_lx"), lx_at(0));
  EXPECT_EQ(graph.nodes[3].op.inputs[0].buffer, graph.find("x_lx"));
}

TEST(PlaceWriter, WhatIsEvictedIsCopiedOutOnceAndFetchedAgain) {
  const DeviceGraph graph = placed(
      test::laid_out(
          test::elementwise("x=64; y=64; a = exp x; b = neg a; c = abs a; d = exp y; e = neg a; f = abs a")),
      {{"a@1", 0}, {"a@2", 128}}, true);
  EXPECT_THAT(node_names(graph), ElementsAre("a", "a", "b", "c", "d", "a_lx_1", "e", "f"));
  EXPECT_EQ(place_of(graph, "a"), std::nullopt);
  EXPECT_EQ(place_of(graph, "a_lx"), lx_at(0));
  EXPECT_EQ(place_of(graph, "a_lx_1"), lx_at(128));
}

TEST(PlaceWriter, AShuffleComesJustBeforeTheReadersItServes) {
  const DeviceGraph graph = placed(test::laid_out(test::kRowsThenColumns), {{"a", 0}, {"a#1", 8192}});
  EXPECT_THAT(node_names(graph), ElementsAre("a", "a_lx", "b"));
  EXPECT_EQ(graph.nodes[1].op.op, OpId::shuffle);
  EXPECT_EQ(place_of(graph, "a_lx"), lx_at(8192));
  EXPECT_EQ(graph.nodes[2].op.inputs[0].buffer, graph.find("a_lx"));
}

}  // namespace
}  // namespace spyre::lx
