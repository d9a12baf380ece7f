// Whoever catches a refusal finds the node of the graph that was given, in fields.

#include <gmock/gmock.h>

#include "spyre/driver/compile.h"

namespace spyre {
namespace {

ErrorNode refused(std::string_view text, const CompileOptions& options = {}) {
  const Result<Graph> graph = parse_graph(text);
  if (!graph.ok()) return graph.error().node.value_or(ErrorNode{});
  const auto compiled = compile(graph.value(), options);
  return compiled.ok() ? ErrorNode{.name = "accepted"} : compiled.error().node.value_or(ErrorNode{});
}

TEST(Refusal, OfSelectionNamesTheNode) {
  EXPECT_EQ(refused(R"(graph g {
    input x : float16[4, 64]
    buffer y : float16[4, 64]
    buffer z : float16[4, 64]
    node y (p0: 4, p1: 64) { v0 = load x[64*p0 + p1] v1 = neg v0 store y[64*p0 + p1] v1 }
    node z (p0: 4, p1: 64) aten="aten.what" at="model.py:7" {
      v0 = load y[64*p0 + p1] v1 = what v0 store z[64*p0 + p1] v1
    }
    return z
  })"),
            (ErrorNode{"z", "aten.what", "model.py:7"}));
}

TEST(Refusal, OfMoreCoresThanTheMachineHasSaysHowMany) {
  const Graph graph = parse_graph(R"(graph g {
    input x : float16[4, 64]
    buffer y : float16[4, 64]
    node y (p0: 4, p1: 64) { v0 = load x[64*p0 + p1] v1 = neg v0 store y[64*p0 + p1] v1 }
    return y
  })")
                          .value();
  EXPECT_EQ(compile(graph, {.cores = 33}).error().to_string(),
            "work cannot be divided over 33 cores: spyre has 32\n  try  SENCORES=32");
  Machine larger = spyre_card();
  larger.cores = 64;
  EXPECT_TRUE(compile(graph, {.cores = 64, .machine = larger}).ok());
}

TEST(Refusal, OfAStepNamesTheNodeThatItIsAStepOf) {
  // The card counts upwards only: the first of two steps is refused.
  const Graph graph = parse_graph(R"(graph g {
    input x : float32[64]
    buffer y : float32[64]
    node y (p0: 64) aten="aten.what" { v0 = load x[63 - p0] v1 = abs v0 v2 = neg v1 store y[p0] v2 }
    return y
  })")
                          .value();
  const auto compiled = compile(graph);
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.error().message, testing::HasSubstr("assign-layouts: node 'y_0' (abs)"));
  EXPECT_EQ(compiled.error().node, (ErrorNode{"y", "aten.what", ""}));
}

TEST(Refusal, OfTextNamesTheNodeOrTheBufferThatANodeFills) {
  EXPECT_EQ(
      refused("graph g { input x : float16[4] buffer y : float16[4] node y (p: 4) { v0 = lod x[p] } }").name,
      "y");
  EXPECT_EQ(refused("graph g { input x : float16[4] buffer y : float64[4] }").name, "y");
}

TEST(Refusal, OfIntermediateResultsThatAreTooLargeNamesTheFirstThatHasNoRoom) {
  // 2^33 elements of two bytes are 16 GiB; the pool has 14.
  EXPECT_EQ(refused(R"(graph g {
    input x : float16[131072, 65536]
    buffer y : float16[131072, 65536]
    buffer z : float16[131072, 65536]
    node y (p0: 131072, p1: 65536) { v0 = load x[65536*p0 + p1] v1 = neg v0 store y[65536*p0 + p1] v1 }
    node z (p0: 131072, p1: 65536) { v0 = load y[65536*p0 + p1] v1 = neg v0 store z[65536*p0 + p1] v1 }
    return z
  })")
                .name,
            "y");
}

TEST(Refusal, NamesNoNodeWhereTheOptionsAreWrong) {
  CompileOptions options;
  options.scratchpad.solver = "nobody";
  EXPECT_EQ(refused(R"(graph g {
    input x : float16[4, 64]
    buffer y : float16[4, 64]
    node y (p0: 4, p1: 64) { v0 = load x[64*p0 + p1] v1 = neg v0 store y[64*p0 + p1] v1 }
    return y
  })",
                    options),
            ErrorNode{});
}

}  // namespace
}  // namespace spyre
