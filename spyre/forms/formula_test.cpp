#include "spyre/forms/formula.h"

#include <gmock/gmock.h>

#include "spyre/forms/steps.h"
#include "spyre/layout/device_layout.h"

namespace spyre::forms {
namespace {

using ::testing::HasSubstr;

TensorView buffer(Graph& graph, std::string name, std::vector<int64_t> size, HostType dtype, bool is_input) {
  Buffer made{.name = std::move(name), .dtype = dtype, .size = size, .stride = contiguous_strides(size)};
  made.is_input = is_input;
  TensorView view{.dtype = dtype, .size = size, .stride = made.stride};
  view.buffer = graph.add_buffer(std::move(made));
  return view;
}

struct Formulas : ::testing::Test {
  Graph graph;
  TensorView x = buffer(graph, "x", {4, 100}, HostType::kFloat16, true);
  TensorView c = buffer(graph, "c", {4, 1}, HostType::kFloat16, true);
  TensorView y = buffer(graph, "y", {4, 100}, HostType::kFloat16, false);
  Builder builder{graph, {y}, {}};

  Formulas() { graph.results = {y.buffer}; }
};

TEST_F(Formulas, AreWrittenOnceEachInOrder) {
  const Element gate = call("sigmoid", {x});
  fill(builder, 0, gate * (1.0 - gate));
  ASSERT_TRUE(builder.status().ok() && verify(graph).ok());
  EXPECT_THAT(to_text(graph), HasSubstr(R"(
    v0 = load x[100*p0 + p1]
    v1 = sigmoid v0
    v2 = constant 1 : float16
    v3 = sub v2 v1
    v4 = mul v1 v3
    store y[100*p0 + p1] v4)"));
}

TEST_F(Formulas, AreAsLargeAsTheirOperandsTogether) {
  const TensorView sum = compute(builder, Element(c) + unsqueeze(narrow(x, 0, 1, 1), 0));
  EXPECT_EQ(sum.size, (std::vector<int64_t>{1, 4, 100}));
  EXPECT_EQ(sum.dtype, HostType::kFloat16);
  EXPECT_EQ(compute(builder, Element(x) < 0.0).dtype, HostType::kBool);
}

TEST_F(Formulas, AChoiceHasTheTypeOfWhatItChooses) {
  const Element words = cast(x, HostType::kFloat32);
  EXPECT_EQ(compute(builder, where(Element(x) < 0.0, words, 0.0)).dtype, HostType::kFloat32);
}

TEST_F(Formulas, StepsOfRowsFoldAndComeBack) {
  const TensorView rest = centred(builder, x, {false, true});
  EXPECT_EQ(rest.size, x.size);
  fill(builder, 0, rest);
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_THAT(to_text(graph), HasSubstr("reduce.mean"));
}

TEST_F(Formulas, AViewThatIsNotInRowsIsCopiedBeforeItIsSeenOtherwise) {
  EXPECT_EQ(reshape(builder, x, {400}).buffer, x.buffer);
  const TensorView part = reshape(builder, narrow(x, 1, 0, 50), {200});
  EXPECT_NE(part.buffer, x.buffer);
  EXPECT_EQ(graph.nodes.size(), 1U);
}

TEST_F(Formulas, WhatDoesNotFitIsRemembered) {
  fill(builder, 0, Element(unsqueeze(x, 0)) + 1.0);
  EXPECT_FALSE(builder.status().ok());
  EXPECT_TRUE(graph.nodes.empty());
}

}  // namespace
}  // namespace spyre::forms
