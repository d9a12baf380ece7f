#include <gmock/gmock.h>

#include <functional>

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

constexpr std::string_view kCalls = R"(graph calls {
  input x : float16[4, 100] stride=[100, 1]
  input n : int64[] stride=[]
  buffer y : float16[4, 100] stride=[100, 1]
  buffer m : float16[4, 1] stride=[1, 1]
  buffer r : float16[4, 1] stride=[1, 1]
  buffer t : float16[6, 100] stride=[100, 1]
  call y aten.native_layer_norm.default(x, [100], none, none, 1e-05) -> (y, m, r) at='model.py:12' hint={p0: 2}
  call t aten.cat.default({y : [2, 100] offset=200, none, x}, -2) -> (t) default_float=float16 float32_parts=1
  call k aten.everything(x : [100, 4] stride=[1, 100], n, true, 7, 9223372036854775807, -0.0, 2.0 : float32, 3 : int64, -inf, nan, [], [1, -2], [0.5, inf], {}, dtype(bool), 'tanh') -> (none, t : [4, 100] offset=100)
  return t
}
)";

TEST(GraphText, CallsComeBackAsTheyWere) {
  const Graph graph = parse_graph(kCalls).value();
  EXPECT_EQ(to_text(graph), kCalls);
  const Call& norm = *graph.nodes[0].call;
  EXPECT_EQ(norm.op, "aten.native_layer_norm.default");
  EXPECT_EQ(norm.results.size(), 3U);
  EXPECT_EQ(std::get<Number>(norm.arguments[4]), (Number{.value = 1e-5, .kind = Number::Kind::kFloat}));
  const auto& pieces = std::get<TensorList>(graph.nodes[1].call->arguments[0]);
  EXPECT_EQ(*pieces[0], (TensorView{.buffer = 2, .size = {2, 100}, .stride = {100, 1}, .offset = 200}));
  EXPECT_FALSE(pieces[1].has_value());
  EXPECT_EQ(operands_of(*graph.nodes[1].call).size(), 2U);
  // The third has a NaN, which equals nothing.
  Graph comparable = graph;
  comparable.nodes.pop_back();
  EXPECT_EQ(parse_graph(to_text(comparable)).value(), comparable);
}

TEST(GraphText, ErrorsOfCallsNameTheCallAndWhatIsAllowed) {
  const std::vector<BadText> cases = {
      {"(x, [100]", "(q, [100]", "buffer 'q' was not declared"},
      {"offset=200", "offset=500", "sees elements 500 to 699 of 'y', which has 400"},
      {"offset=200", "offset=-1", "its view of 'y' starts before its storage"},
      {"y : [2, 100]", "y : [2, 50, 2]", "a view of 'y' has 3 sizes and 2 strides"},
      {"y : [2, 100]", "y : [2, 4611686018427387904]",
       "its view of 'y' has more than 1099511627776 elements"},
      {"stride=[1, 100], n", "stride=[1, -100], n", "its view of 'x' has a negative size or stride"},
      {"-> (y, m, r)", "-> (y, m, q)", "buffer 'q' was not declared"},
      {"-> (y, m, r)", "-> ()", "found ')', expected the name of a buffer"},
      {"-> (y, m, r)", "-> (none)", "has no result"},
      {"-> (y, m, r)", "(y, m, r)", "found '(', expected '-'"},
      {"(t) default", "(t : [6, 100] stride=[0, 1]) default", "writes an element of 't' several times"},
      {"(t) default", "(x) default", "writes 'x' over what it reads"},
      {"call y aten", "call z aten.neg.default(t) -> (t) call y aten",
       "reads 't' before anything is written"},
      {"[0.5, inf]", "[0.5, 1]", "a list has integers or floats, not both"},
      {" 7,", " 9007199254740993,", "9007199254740993 is beyond 9007199254740992"},
      {"[1, -2]", "[1, 1099511627777]", "1099511627777 is beyond any size"},
      {"dtype(bool)", "dtype(float64)", "'float64' is not an element type of the card"},
      {"float32_parts=1", "float32_parts=4", "found 4 parts, allowed are 1 to 3"},
      {"hint={p0: 2}", "bundle=1",
       "found 'bundle', expected extent, input, buffer, node, call, return or '}'"},
  };
  for (const BadText& bad : cases) {
    std::string text(kCalls);
    ASSERT_NE(text.find(bad.from), std::string::npos) << bad.from;
    text.replace(text.find(bad.from), bad.from.size(), bad.to);
    const auto graph = parse_graph(text, "a.ir");
    ASSERT_FALSE(graph.ok()) << bad.to;
    EXPECT_THAT(graph.error().message, HasSubstr(bad.message));
  }
}

TEST(Verify, RefusesCallsThatTextCannotSay) {
  const Graph graph =
      parse_graph(
          "graph g { input x : float16[4] buffer y : float16[4] call y aten.op(x, 1) -> (y) return y }")
          .value();
  const auto message_after = [&](const std::function<void(Graph&)>& spoil) {
    Graph spoiled = graph;
    spoil(spoiled);
    const Status status = verify(spoiled);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(message_after([](Graph&) {}), "");
  EXPECT_THAT(message_after([](Graph& g) { g.buffers[0].name = "none"; }),
              HasSubstr("a tensor is called 'none', a word for a value"));
  EXPECT_THAT(message_after([](Graph& g) { g.nodes[0].call->results[0].dtype = HostType::kInt64; }),
              HasSubstr("sees 'y' as int64, which is float16"));
  EXPECT_THAT(message_after([](Graph& g) {
                g.nodes[0].call->arguments[1] = Number{.value = 0.5, .kind = Number::Kind::kInt};
              }),
              HasSubstr("0.5 is no exact whole number"));
  EXPECT_THAT(message_after([](Graph& g) {
                g.nodes[0].call->arguments[1] = Number{.value = 2, .kind = Number::Kind::kBool};
              }),
              HasSubstr("2 is no boolean"));
  EXPECT_THAT(message_after([](Graph& g) { g.nodes[0].call->arguments[1] = std::vector<double>(); }),
              HasSubstr("a list of no numbers is one of integers"));
  EXPECT_THAT(message_after([](Graph& g) { g.nodes[0].loops.push_back({.name = "p0"}); }),
              HasSubstr("has loops or a body besides the operator"));
  EXPECT_THAT(message_after([](Graph& g) { g.nodes[0].call->results.clear(); }), HasSubstr("has no result"));
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

TEST(Verify, CallsMadeWithoutTextAreCheckedToo) {
  Graph graph =
      parse_graph(
          "graph g { input x : float16[4, 8] buffer y : float16[4, 8] call y aten.op(x) -> (y) return y }")
          .value();
  std::get<TensorView>(graph.nodes[0].call->arguments[0]).stride.pop_back();
  EXPECT_THAT(verify(graph).error().message, HasSubstr("sees 'x' with 2 sizes and 1 strides"));
}

TEST(CheckSizes, LayoutsMadeWithoutTextAreCheckedToo) {
  Graph graph = parse_graph(kScaledSum).value();
  graph.buffers[0].layout->device_size[0] = -1;
  EXPECT_THAT(check_sizes(graph).error().message,
              HasSubstr("graph 'scaled_sum': buffer 'x' has a layout no memory can have: "));
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

TEST(BodyOps, AreReadByTheNamesTheyArePrintedWith) {
  for (int i = 0; i <= static_cast<int>(BodyOp::sum); ++i) {
    const auto op = static_cast<BodyOp>(i);
    EXPECT_EQ(body_op_from_name(to_string(op)), op);
    EXPECT_EQ(is_fold(op), to_string(op).starts_with("reduce."));
  }
  EXPECT_EQ(to_string(BodyOp::sum), "reduce.sum");
  EXPECT_EQ(body_op_from_name("sum"), std::nullopt);
  EXPECT_EQ(body_op_from_name("reduce.add"), std::nullopt);
}

TEST(GraphText, ALoopAlongAnExtentIsAsLongAsItsCapacity) {
  Graph graph = parse_graph(R"(graph rows {
    extent e0 <= 128 of='s0'
    input n0 : float32[] value_of=e0
    input x : float16[e0, 64]
    buffer y : float16[e0, 64]
    node y (a: e0, b: 64) {
      v0 = load x[64*a + b]
      store y[64*a + b] v0
    }
    return y
  })")
                    .value();
  EXPECT_EQ(parse_graph(to_text(graph)).value(), graph);
  EXPECT_EQ(graph.nodes[0].loops[0].extent, 128);
  EXPECT_EQ(graph.value_of(graph.nodes[0].loops[0].bound), graph.find("n0"));
  graph.nodes[0].loops[0].extent = 100;
  EXPECT_THAT(verify(graph).error().message,
              HasSubstr("'y' has 100 positions along extent 'e0', whose capacity is 128"));
}

}  // namespace
}  // namespace spyre
