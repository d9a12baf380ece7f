#include "spyre/graph/device_graph.h"

#include <gmock/gmock.h>

namespace spyre {
namespace {

using ::testing::HasSubstr;

/// One node that fills s, with this body.
std::string graph_of(const std::string& body) {
  return "graph g { input x : float16[4, 64] input w : float16[64, 64] input i : int64[4] buffer s : "
         "float32[4, 64] "
         "node s (p0: 4, p1: 64; r0: 64) bundle=0 { " +
         body + " } return s }";
}

std::string refusal(const std::string& body) {
  const Result<DeviceGraph> graph = parse_device_graph(graph_of(body), "g.ir");
  return graph.ok() ? "accepted" : graph.error().to_string();
}

TEST(DeviceGraphText, NodesOwnOneOperationOfTheCard) {
  const DeviceGraph graph =
      parse_device_graph(graph_of("v0 = load x[64*p0 + r0] v1 = load w[64*r0 + p1] "
                                  "v2 = reduce.batchmatmul v0 v1 : float32 store s[64*p0 + p1] v2"))
          .value();
  const DeviceOp& op = graph.nodes[0].op;
  EXPECT_EQ(op.op, OpId::batchmatmul);
  EXPECT_TRUE(op.is_matmul());
  EXPECT_TRUE(op.reduces);
  ASSERT_EQ(op.inputs.size(), 2U);
  EXPECT_EQ(op.inputs[1], (Access{1, parse_expr("64*r0 + p1").value()}));
  EXPECT_EQ(op.output.buffer, graph.find("s"));
  EXPECT_THAT(to_text(graph), HasSubstr("v2 = reduce.batchmatmul v0 v1 : float32\n"));
  EXPECT_EQ(parse_device_graph(to_text(graph)).value(), graph);
}

TEST(DeviceGraphText, ACopyIsAnIdentityWithoutSayingSo) {
  const DeviceGraph graph =
      parse_device_graph(graph_of("v0 = load x[64*p0 + p1] store s[64*p0 + p1] v0")).value();
  EXPECT_EQ(graph.nodes[0].op.op, OpId::identity);
  EXPECT_THAT(to_text(graph), Not(HasSubstr("identity")));
  EXPECT_EQ(parse_device_graph(to_text(graph)).value(), graph);
}

// Wherever their loads stand, index tensors are the first values of the text that is printed.
TEST(DeviceGraphText, IndexTensorsAreNamedInOrder) {
  const DeviceGraph graph =
      parse_device_graph(graph_of("v0 = load w[p1] v1 = load i[p0] v2 = load x[64*IndirectAccess('v1') + p1] "
                                  "v3 = mul v2 v0 store s[64*p0 + p1] v3"))
          .value();
  const DeviceOp& op = graph.nodes[0].op;
  ASSERT_EQ(op.indices.size(), 1U);
  EXPECT_EQ(op.indices[0].first, "v0");
  EXPECT_EQ(op.indices[0].second.buffer, graph.find("i"));
  EXPECT_EQ(op.inputs[0].index.to_string(), "64*IndirectAccess('v0') + p1");
  EXPECT_EQ(parse_device_graph(to_text(graph)).value(), graph);
}

TEST(DeviceGraphText, RefusesWhatSelectionHasNotSeen) {
  EXPECT_THAT(
      refusal("v0 = load x[p1] v1 = exp v0 v2 = neg v1 store s[p1] v2"),
      HasSubstr(
          "found 'neg' behind another operation, a node of a device graph is one operation of the card\n"
          "  note 'select-ops' makes a device graph of a captured one"));
  EXPECT_THAT(refusal("v0 = load x[p1] v1 = relu v0 store s[p1] v1"), HasSubstr("found 'relu', a node of"));
  EXPECT_THAT(parse_device_graph("graph g { input x : float16[4] buffer s : float16[4] "
                                 "call s aten.exp.default(x) -> (s) return s }")
                  .error()
                  .message,
              HasSubstr("found a call, a node of a device graph"));
}

TEST(DeviceGraphText, RefusesBodiesThatDoNotHangTogether) {
  EXPECT_THAT(refusal("v0 = load x[p1] v1 = exp v0 store s[p1] v0"),
              HasSubstr("stores v0, its operation makes v1"));
  EXPECT_THAT(refusal("v0 = load x[p1] v1 = exp v7 store s[p1] v1"),
              HasSubstr("'v7' is not an earlier value of node 's'"));
  EXPECT_THAT(refusal("v0 = load x[p1] v1 = exp v0 : float16 store s[p1] v1"),
              HasSubstr("stores float16 into 's', which is float32"));
  EXPECT_THAT(refusal("v0 = load x[64*IndirectAccess('v3') + p1] store s[p1] v0"),
              HasSubstr("positions come from 'v3', which is no load of node 's'"));
}

TEST(DeviceGraphVerify, HoldsNodesToTheRulesOfCapturedOnes) {
  EXPECT_THAT(refusal("v0 = load s[p1] store s[p1] v0"),
              HasSubstr("reads 's' before anything is written there"));
  EXPECT_THAT(refusal("v0 = load x[p1] store s[64*p0 + r0] v0"), HasSubstr("its store uses 'r0'"));
  EXPECT_THAT(refusal("v0 = load x[1099511627776*p0] store s[p1] v0"), HasSubstr("values of an index"));
}

TEST(DeviceGraphVerify, IndexTensorsHaveTheNamesThatTextGivesThem) {
  DeviceGraph graph = parse_device_graph(graph_of("v0 = load i[p0] v1 = load x[64*IndirectAccess('v0') + p1] "
                                                  "store s[64*p0 + p1] v1"))
                          .value();
  EXPECT_TRUE(verify(graph).ok());
  graph.nodes[0].op.indices[0].first = "v1";
  EXPECT_THAT(verify(graph).error().message, HasSubstr("calls an index tensor 'v1', the next one is v0"));
}

}  // namespace
}  // namespace spyre
