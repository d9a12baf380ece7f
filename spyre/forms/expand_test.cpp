#include "spyre/forms/expand.h"

#include <gmock/gmock.h>

#include "spyre/layout/device_layout.h"

namespace spyre::forms {
namespace {

using ::testing::HasSubstr;

/// A graph with inputs and one output, and the calls over them.
struct Program {
  Graph graph;

  TensorView buffer(std::string name, std::vector<int64_t> size, HostType dtype, bool is_input) {
    Buffer made{.name = std::move(name), .dtype = dtype, .size = size, .stride = contiguous_strides(size)};
    made.is_input = is_input;
    TensorView view{.dtype = dtype, .size = size, .stride = made.stride};
    view.buffer = graph.add_buffer(std::move(made));
    return view;
  }
  TensorView input(std::string name, std::vector<int64_t> size, HostType dtype = HostType::kFloat16) {
    return buffer(std::move(name), std::move(size), dtype, true);
  }
  TensorView output(std::string name, std::vector<int64_t> size, HostType dtype = HostType::kFloat16) {
    TensorView view = buffer(std::move(name), std::move(size), dtype, false);
    graph.results.push_back(view.buffer);
    return view;
  }
};

Number integer(int64_t value) {
  return {.value = static_cast<double>(value), .kind = Number::Kind::kInt};
}

std::string refusal(Program program, const Call& call) {
  const Graph before = program.graph;
  const Status expanded = expand_call(program.graph, call, "y", "");
  EXPECT_EQ(program.graph, before) << "a refusal leaves the graph as it was";
  return expanded.ok() ? "" : expanded.error().message;
}

TEST(Expand, ACallBecomesTheNodesOfItsForm) {
  Program program;
  program.graph.name = "sum";
  const TensorView x = program.input("x", {4, 100}), column = program.input("c", {4, 1});
  const TensorView y = program.output("y", {4, 100});
  const Call call{.op = "aten.add.Tensor", .arguments = {x, column, Number{.value = 0.5}}, .results = {y}};
  ASSERT_TRUE(expand_call(program.graph, call, "y", "model.py:3").ok());
  ASSERT_TRUE(verify(program.graph).ok());
  EXPECT_EQ(to_text(program.graph), R"(graph sum {
  input x : float16[4, 100] stride=[100, 1]
  input c : float16[4, 1] stride=[1, 1]
  buffer y : float16[4, 100] stride=[100, 1]
  node y_n0 (p0: 4, p1: 100) aten='aten.add.Tensor' at='model.py:3' {
    v0 = load x[100*p0 + p1]
    v1 = load c[p0]
    v2 = constant 0.5 : float16
    v3 = mul v1 v2
    v4 = add v0 v3
    store y[100*p0 + p1] v4
  }
  return y
}
)");
}

TEST(Expand, StepsMeetInLocalBuffers) {
  Program program;
  const TensorView x = program.input("x", {4, 100}), y = program.output("y", {4, 100});
  const Call call{.op = "aten._softmax.default", .arguments = {x, integer(-1)}, .results = {y}};
  ASSERT_TRUE(expand_call(program.graph, call, "y", "").ok());
  EXPECT_TRUE(verify(program.graph).ok());
  EXPECT_EQ(program.graph.nodes.size(), 4U);
  for (const Buffer& buffer : program.graph.buffers) {
    EXPECT_TRUE(buffer.is_input || buffer.name.starts_with("y")) << buffer.name;
  }
}

TEST(Expand, AViewCostsNothing) {
  Program program;
  TensorView transposed = program.input("x", {100, 4});
  std::swap(transposed.size[0], transposed.size[1]);
  std::swap(transposed.stride[0], transposed.stride[1]);
  const TensorView y = program.output("y", {4, 100});
  const Call call{.op = "aten.relu.default", .arguments = {transposed}, .results = {y}};
  ASSERT_TRUE(expand_call(program.graph, call, "y", "").ok());
  EXPECT_THAT(to_text(program.graph), HasSubstr("load x[p0 + 4*p1]"));
}

TEST(Expand, RefusesWhatDoesNotFit) {
  Program program;
  const TensorView x = program.input("x", {4, 100}), bytes = program.input("b", {4, 100}, HostType::kInt8);
  const TensorView y = program.output("y", {4, 100}), row = program.output("r", {100});
  TensorView lost = x;
  lost.buffer = 77;
  TensorView wide = x;
  wide.size[1] = int64_t{1} << 41;
  TensorView flat = x;
  flat.stride = {1};
  const auto call = [](std::string op, std::vector<Argument> arguments, std::vector<TensorView> results) {
    return Call{.op = std::move(op), .arguments = std::move(arguments), .results = std::move(results)};
  };
  EXPECT_THAT(refusal(program, call("aten.nothing.default", {x}, {y})), HasSubstr("no form says what"));
  EXPECT_THAT(refusal(program, call("aten.add.Tensor", {x}, {y})),
              HasSubstr("argument 1 of aten.add.Tensor is not a tensor or a number"));
  EXPECT_THAT(refusal(program, call("aten.mm.default", {x, std::string("x")}, {y})),
              HasSubstr("is not a tensor"));
  EXPECT_THAT(refusal(program, call("aten.relu.default", {x}, {y, y})), HasSubstr("has 1 results, found 2"));
  EXPECT_THAT(refusal(program, call("aten.relu.default", {lost}, {y})),
              HasSubstr("a tensor without a buffer"));
  EXPECT_THAT(refusal(program, call("aten.relu.default", {flat}, {y})),
              HasSubstr("it reads 'x' as what it is not"));
  EXPECT_THAT(refusal(program, call("aten.relu.default", {wide}, {y})),
              HasSubstr("a view of 'x' with 2199023255552 elements along one dimension"));
  EXPECT_THAT(refusal(program, call("aten.relu.default", {bytes}, {y})), HasSubstr("computes no int8"));
  EXPECT_THAT(refusal(program, call("aten.relu.default", {x}, {row})),
              HasSubstr("more dimensions than the result"));
  EXPECT_THAT(refusal(program, call("aten.sum.dim_IntList", {x, std::vector<int64_t>{7}}, {row})),
              HasSubstr("dimension 7 of a tensor that has 2"));
  EXPECT_THAT(refusal(program, call("aten.mm.default", {x, row}, {y})),
              HasSubstr("a product of tensors with"));
}

TEST(Expand, EveryFormRefusesArgumentsThatAreMissing) {
  for (const FormRow& row : all_forms()) {
    Program program;
    const TensorView y = program.output("y", {4});
    EXPECT_THAT(refusal(program, Call{.op = std::string(row.name), .results = {y}}), HasSubstr(row.name))
        << row.name;
  }
}

}  // namespace
}  // namespace spyre::forms
