#include "spyre/passes/select/op_emitter.h"

#include <gmock/gmock.h>

#include "spyre/passes/select/select_ops.h"

namespace spyre {
namespace {

using ::testing::ElementsAre;

/// A node over (p0: 4; r0: 8) that stores float16, for emitters to replace.
class OpEmitterTest : public testing::Test {
 protected:
  Operand x(int64_t first = 0) const {
    return {.access = Access{0, parse_expr("8*p0 + r0").value() + Expr::constant(first)}};
  }
  std::vector<OpId> ops() const {
    std::vector<OpId> ids;
    for (const DeviceNode& node : out_) ids.push_back(node.op.op);
    return ids;
  }
  std::vector<std::string> loops(size_t node) const {
    std::vector<std::string> names;
    for (const Loop& loop : out_[node].loops) names.push_back((loop.reduced ? ";" : "") + loop.name);
    return names;
  }

  Graph graph_ =
      parse_graph(
          "graph g { input x : float16[4, 8] input i : int32[4] buffer y : float16[4] "
          "node y (p0: 4; r0: 8) hint={p0: 2} { v0 = load x[8*p0 + r0] v1 = reduce.sum v0 store y[p0] v1 } "
          "return y }")
          .value();
  Node node_ = graph_.nodes[0];
  std::vector<DeviceNode> out_;
  OpEmitter emit_{graph_, node_, out_};
};

TEST_F(OpEmitterTest, AnOperationRunsOverTheLoopsItsOperandsUse) {
  const Operand rows{.access = Access{1, Expr::symbol("p0")}};
  emit_.op(OpId::neg, {rows});
  emit_.op(OpId::add, {x(), rows});
  EXPECT_THAT(ops(), ElementsAre(OpId::neg, OpId::add));
  EXPECT_THAT(loops(0), ElementsAre("p0"));
  EXPECT_THAT(loops(1), ElementsAre("p0", "r0"));  // r0 is folded later, and ordinary here
}

TEST_F(OpEmitterTest, FoldedLoopsComeLast) {
  const Operand sum = emit_.reduce(OpId::sum, {x()}, {"r0"});
  EXPECT_THAT(loops(0), ElementsAre("p0", ";r0"));
  EXPECT_EQ(sum.access->index.to_string(), "p0");
}

TEST_F(OpEmitterTest, PartOfALoopStartsWhereItSays) {
  emit_.reduce_part(OpId::sum, {x()}, "r0", 2, 4, Held::kFp16);
  EXPECT_EQ(out_[0].loops.back().extent, 4);
  EXPECT_EQ(out_[0].op.inputs[0].index.to_string(), "8*p0 + r0 + 2");
}

TEST_F(OpEmitterTest, EqualNumbersShareABuffer) {
  const Operand half = emit_.constant(0.5, HostType::kFloat16);
  const size_t before = graph_.buffers.size();
  emit_.op(OpId::mul, {x(), half});
  emit_.op(OpId::add, {x(), half});
  EXPECT_EQ(graph_.buffers.size(), before + 3);  // two results, one constant
}

TEST_F(OpEmitterTest, HoldingConvertsOnlyWhatIsHeldOtherwise) {
  EXPECT_EQ(emit_.hold(x(), Held::kFp16).access, x().access);
  EXPECT_TRUE(ops().empty());
  EXPECT_EQ(emit_.hold(x(), Held::kFp32).held, Held::kFp32);
  EXPECT_THAT(ops(), ElementsAre(OpId::dl16tofp32));
  // A number has no buffer yet, and takes the format it is asked for.
  EXPECT_TRUE(emit_.hold(emit_.constant(1, HostType::kFloat16), Held::kInt32).is_constant());
}

TEST_F(OpEmitterTest, TruthValuesAreWholeNumbersAlready) {
  Operand truth = x();
  truth.type = HostType::kBool;
  emit_.hold(truth, Held::kInt32);
  EXPECT_THAT(ops(), ElementsAre(OpId::dl16tofp32, OpId::fp32toint32));  // no floor on the way
}

TEST_F(OpEmitterTest, WhatMakesTheValueStoresItItself) {
  ASSERT_TRUE(emit_.store(emit_.reduce(OpId::sum, {x()}, {"r0"})).ok());
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_EQ(out_[0].name, "y");
  EXPECT_EQ(out_[0].op.output.buffer, node_.target);
  EXPECT_THAT(out_[0].hints, ElementsAre(std::pair<std::string, int64_t>("p0", 2)));
}

TEST_F(OpEmitterTest, AValueOfFewerLoopsIsCopiedAlongTheRest) {
  const Operand one{.access = Access{0, Expr()}};
  ASSERT_TRUE(emit_.store(emit_.op(OpId::neg, {one})).ok());
  EXPECT_THAT(ops(), ElementsAre(OpId::neg, OpId::identity));
  EXPECT_THAT(loops(1), ElementsAre("p0"));
}

TEST_F(OpEmitterTest, PositionsAreRampsAndKnowHowFarTheyGo) {
  const Operand position = emit_.ramp(parse_expr("8*p0 + r0 + 3").value(), HostType::kInt32).value();
  EXPECT_EQ(position.most, 3 + 24 + 7);
  EXPECT_THAT(ops(), ElementsAre(OpId::addi32toi32));
  const Result<Operand> quotient = emit_.ramp(parse_expr("floor(r0/3)").value(), HostType::kInt32);
  ASSERT_FALSE(quotient.ok());
  EXPECT_EQ(quotient.error().message,
            "select-ops: node 'y': 'floor(r0/3)' as a value; allowed are sums of loops times numbers");
}

}  // namespace
}  // namespace spyre
