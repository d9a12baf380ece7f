#include <gmock/gmock.h>

#include "spyre/graph/device_op.h"
#include "spyre/graph/graph.h"

namespace spyre {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kScaledSum = R"(graph scaled_sum {
  input x : float16[4, 100] stride=[100, 1] layout=([2, 4, 64], [64, 100, 1], SEN169_FP16, STANDARD)
  buffer s : float16[4] stride=[1]
  node s (p0: 4/2; r0: 100) aten='aten.sum' at='model.py:3' hint={p0: 2} {
    v0 = load x[100*p0 + r0]
    v1 = constant 0.125 : float16
    v2 = mul v0 v1
    v3 = clamp v2 {min: -1, max: inf}
    v4 = to_dtype v3 : float32
    v5 = reduce.sum v4
    store s[p0] v5
  }
  return s
}
)";

TEST(GraphText, ComesBackAsItWas) {
  const Graph graph = parse_graph(kScaledSum).value();
  EXPECT_EQ(to_text(graph), kScaledSum);
  EXPECT_EQ(parse_graph(to_text(graph)).value(), graph);
  EXPECT_EQ(graph.nodes[0].body[5].dtype, HostType::kFloat32);
}

struct BadText {
  std::string from, to, message;
};

TEST(GraphText, ErrorsNameTheLineAndWhatIsAllowed) {
  const std::vector<BadText> cases = {
      {"mul v0 v1", "mul v0 v7", "'v7' is not an earlier value of node 's'"},
      {"load x[", "load y[", "buffer 'y' was not declared"},
      {": float32", ": float64", "'float64' is not an element type of the card"},
      {"p0: 4/2;", "p0: 4/2, p0: 3;", "loop 'p0' appears twice"},
      {"store s[p0]", "store s[r0]", "uses 'r0', a loop that is reduced"},
      {"100*p0 + r0", "100*q + r0", "uses 'q', which is no loop of the node"},
      {"store s[p0]", "store s[2*p0]", "reaches elements 0 to 6, the buffer has 4"},
      {"v1 = constant", "v2 = constant", "found 'v2', the next value is v1"},
      {"return s", "return t", "buffer 't' was not declared"},
  };
  for (const BadText& bad : cases) {
    std::string text(kScaledSum);
    text.replace(text.find(bad.from), bad.from.size(), bad.to);
    const auto graph = parse_graph(text, "a.ir");
    ASSERT_FALSE(graph.ok()) << bad.to;
    EXPECT_THAT(graph.error().message, HasSubstr(bad.message));
  }
}

TEST(GraphText, ABufferIsReadOnlyAfterItIsWritten) {
  const auto graph = parse_graph(
      "graph g { buffer a : float16[2] buffer b : float16[2] "
      "node b (p0: 2) { v0 = load a[p0] store b[p0] v0 } return b }");
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().message, HasSubstr("reads 'a' before anything is written there"));
}

TEST(Verify, GraphsMadeWithoutTextAreCheckedToo) {
  Graph graph = parse_graph(kScaledSum).value();
  graph.buffers[1].name = "x";
  EXPECT_EQ(verify(graph).error().message, "graph 'scaled_sum': buffer 'x' appears twice");
}

TEST(CheckSizes, LayoutsMadeWithoutTextAreCheckedToo) {
  Graph graph = parse_graph(kScaledSum).value();
  graph.buffers[0].layout->device_size[0] = -1;
  EXPECT_THAT(check_sizes(graph).error().message,
              HasSubstr("graph 'scaled_sum': buffer 'x' has a layout no memory can have: "));
}

TEST(DeviceOpView, IsTheNodeWithItsOneOperation) {
  const Graph graph =
      parse_graph(
          "graph g { input t : float16[10, 64] input i : int64[4] buffer b : float16[4, 64] "
          "node b (p0: 4, p1: 64) { v0 = load i[p0] v1 = load t[64*IndirectAccess('v0') + p1] "
          "store b[64*p0 + p1] v1 } return b }")
          .value();
  const DeviceOp op = device_op(graph.nodes[0]);
  EXPECT_EQ(op.op, "identity");
  ASSERT_EQ(op.indices.size(), 1U);
  EXPECT_EQ(op.indices[0].first, "v0");
  ASSERT_EQ(op.inputs.size(), 1U);
  Node rebuilt = graph.nodes[0];
  set_device_op(graph, rebuilt, op, HostType::kFloat16);
  EXPECT_EQ(rebuilt, graph.nodes[0]);
}

TEST(CheckSizes, WhatCouldOverflowIsRefusedWhenItIsRead) {
  const auto graph = [](const std::string& size, const std::string& loop, const std::string& index) {
    return "graph g { input x : float16[" + size + "] stride=[1] buffer y : float16[" + size +
           "] stride=[1] node y (p0: " + loop + ") { v0 = load x[" + index + "] store y[" + index +
           "] v0 } return y }";
  };
  EXPECT_TRUE(parse_graph(graph("1099511627776", "1099511627776", "p0")).ok());
  for (const auto& [size, loop, index] :
       {std::tuple{"4611686018427387904", "4", "p0"}, std::tuple{"9223372036854775807", "4", "p0"},
        std::tuple{"4", "4611686018427387904", "p0"}, std::tuple{"4", "1073741824", "1073741824*p0"}}) {
    const Result<Graph> read = parse_graph(graph(size, loop, index));
    ASSERT_FALSE(read.ok()) << size << " " << loop << " " << index;
    EXPECT_THAT(read.error().message, testing::HasSubstr("more than 1099511627776"));
  }
}

}  // namespace
}  // namespace spyre
