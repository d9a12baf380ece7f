#include "spyre/lx/eligibility.h"

#include <gmock/gmock.h>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

std::string reason_for(const DeviceGraph& graph, std::string_view buffer, MoveSet moves = MoveSet::all()) {
  return ineligible_buffer(graph, access_of(graph).value(), moves, graph.find(buffer).value());
}

TEST(Eligibility, NothingSpeaksAgainstWhatIsMadeAndRead) {
  const DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = neg a"));
  EXPECT_EQ(reason_for(graph, "a"), "");
  EXPECT_EQ(reason_for(graph, "x"), "");
}

TEST(Eligibility, WhatTheCallerOwnsNeedsACopy) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = neg a"));
  EXPECT_EQ(reason_for(graph, "x", MoveSet::all().without({Move::kCopyIn})), "graph input");
  EXPECT_EQ(reason_for(graph, "b"), "graph output");
  graph.results.push_back(graph.find("a").value());
  EXPECT_EQ(reason_for(graph, "a"), "");
  EXPECT_EQ(reason_for(graph, "a", MoveSet::all().without({Move::kCopyOut})), "graph output");
}

TEST(Eligibility, WhatNobodyTouchesOrReadsStays) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; y=64; a = exp x; b = neg x"));
  EXPECT_EQ(reason_for(graph, "y"), "not touched");
  graph.results = {graph.find("a").value()};
  EXPECT_EQ(reason_for(graph, "b"), "no consumer");
}

TEST(Eligibility, AnInputThatIsWrittenStays) {
  const DeviceGraph graph = test::laid_out(R"(graph g {
    input x : float16[64, 64] stride=[64, 1]
    buffer a : float16[64, 64] stride=[64, 1]
    node a (p0: 64, p1: 64) {
      v0 = load x[64*p0 + p1]
      v1 = exp v0
      store a[64*p0 + p1] v1
    }
    node x (p0: 64, p1: 64) {
      v0 = load a[64*p0 + p1]
      v1 = neg v0
      store x[64*p0 + p1] v1
    }
    return a
  })");
  EXPECT_EQ(reason_for(graph, "x"), "mutation target");
}

TEST(Eligibility, AnInputInALargerStorageStays) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = neg x"));
  Buffer& x = graph.buffers[static_cast<size_t>(graph.find("x").value())];
  x.storage = 2 * x.elements();
  EXPECT_EQ(reason_for(graph, "x"), "partial or offset access");
}

TEST(Eligibility, AConstantIsTheCardsOwn) {
  DeviceGraph graph = test::laid_out(test::elementwise("x=64; k=64; a = add x k; b = mul a k"));
  Buffer& k = graph.buffers[static_cast<size_t>(graph.find("k").value())];
  k.is_input = false;
  k.fill = Fill{.start = 1};
  EXPECT_EQ(reason_for(graph, "k"), "constant");
}

// The stick turns from columns to rows: [64, 128] is read in blocks of 64 x 64.
TEST(Eligibility, OnlyARestickifyOfWholeBlocksReadsLxAndOnlyWithShuffles) {
  const auto restickified = [](const std::string& rows) {
    DeviceGraph graph =
        parse_device_graph(
            "graph g {\n  input x : float16[" + rows + ", 128] stride=[128, 1]\n  buffer a : float16[" +
            rows + ", 128] stride=[128, 1]\n  buffer b : float16[" + rows +
            ", 128] stride=[128, 1]\n  node a (p0: " + rows +
            ", p1: 128) {\n v0 = load x[128*p0 + p1]\n v1 = exp v0\n store a[128*p0 + p1] v1\n }\n" +
            "  node b (p0: " + rows +
            ", p1: 128) {\n v0 = load a[128*p0 + p1]\n store b[128*p0 + p1] v0\n }\n  return b\n}\n")
            .value();
    for (Buffer& buffer : graph.buffers)
      buffer.layout = DeviceLayout::standard(buffer.size, DataFormat::SEN169_FP16).value();
    const int64_t m = graph.buffers[2].size[0];
    graph.buffers[2].layout->device_size = {(m + 63) / 64, 128, 64};
    graph.buffers[2].layout->stride_map = {64 * 128, 1, 128};
    return graph;
  };
  const auto read_of_a = [](const DeviceGraph& graph, MoveSet moves) {
    const GraphAccess access = access_of(graph).value();
    return ineligible_touch(graph, access, moves, access.touches[1].back());
  };
  EXPECT_EQ(read_of_a(restickified("64"), MoveSet::all()), "");
  EXPECT_EQ(read_of_a(restickified("64"), MoveSet::all().without({Move::kShuffle})),
            "read by restickify 'b'");
  EXPECT_EQ(read_of_a(restickified("96"), MoveSet::all()), "read by restickify 'b'");
  EXPECT_EQ(reason_for(restickified("96"), "b"), "graph output");
}

}  // namespace
}  // namespace spyre::lx
