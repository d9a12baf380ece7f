#include "spyre/passes/divide/division/axis_facts.h"

#include <gmock/gmock.h>

#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::pointwise;
using test::row_major;
using test::tensor;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(AxisFacts, AStickAxisIsCountedInSticks) {
  const auto facts = axis_facts(pointwise({4, 100})).value();
  EXPECT_FALSE(facts[0].stick);
  EXPECT_EQ(facts[0].size, 4);
  EXPECT_THAT(facts[0].factors, ElementsAre(1, 2, 4));
  EXPECT_TRUE(facts[1].stick);
  EXPECT_EQ(facts[1].size, 2);
  EXPECT_EQ(facts[1].padded_extent(), 128);
  EXPECT_THAT(facts[1].factors, ElementsAre(1, 2));
}

TEST(AxisFacts, TheLongestStickCountsWhenWidthsDiffer) {
  DivisionProblem widen = pointwise({4, 256});
  widen.tensors.back() = row_major("y", {4, 256}, 32);  // fp32: 8 sticks of 32
  const AxisFacts columns = axis_facts(widen).value()[1];
  EXPECT_EQ(columns.lanes, 64);
  EXPECT_EQ(columns.size, 4);
}

TEST(AxisFacts, TheLongestSliceHasWholeSticks) {
  const AxisFacts columns = axis_facts(pointwise({4, 100})).value()[1];
  EXPECT_EQ(columns.slice_extent(1), 100);
  EXPECT_EQ(columns.slice_extent(2), 64);  // and the other core has 36
}

TEST(AxisFacts, AnAxisThatChoosesNoOutputStickIsAReduction) {
  DivisionProblem sum = pointwise({4, 100});
  sum.role = OpRole::kReduction;
  sum.tensors.back() = tensor("y", {1, 4, 64}, {"0", "c0", "0"});
  EXPECT_FALSE(axis_facts(sum).value()[0].reduction);
  EXPECT_TRUE(axis_facts(sum).value()[1].reduction);
}

TEST(AxisFacts, TheOnlyAxisOfAShortVectorCountsAsAReduction) {
  DivisionProblem problem{.op = "neg", .axes = {{.name = "c0", .extent = 50}}};
  problem.tensors = {tensor("x", {1, 64}, {"0", "c0"}), tensor("y", {1, 64}, {"0", "c0"})};
  EXPECT_TRUE(axis_facts(problem).value()[0].reduction);
}

TEST(AxisFacts, ConstraintsNarrowTheSplits) {
  DivisionProblem problem = pointwise({12, 256});
  problem.allowed = {{"c0", {2, 3, 5, 6}}};
  problem.blocked = {"c1"};
  const auto facts = axis_facts(problem).value();
  EXPECT_THAT(facts[0].factors, ElementsAre(2, 3, 6));
  EXPECT_THAT(facts[1].factors, ElementsAre(1));
}

TEST(AxisFacts, ADynamicAxisSplitsAsItsGranularityDoes) {
  DivisionProblem problem = pointwise({96, 64});
  problem.axes[0].granularity = 4;
  const AxisFacts rows = axis_facts(problem).value()[0];
  EXPECT_EQ(rows.size, 96);
  EXPECT_THAT(rows.factors, ElementsAre(1, 2, 4));
}

TEST(AxisFacts, AnAxisWithoutLegalSplitIsRefused) {
  DivisionProblem problem = pointwise({61, 64});
  problem.allowed = {{"c0", {2, 4}}};
  EXPECT_EQ(axis_facts(problem).error().to_string(),
            "op 'neg': no legal split of axis 'c0'\n"
            "  note c0 is 61 long: it divides into 1, 61 parts\n"
            "  note its constraints allow [2, 4]");
  problem.allowed = {{"c0", {61}}};
  problem.blocked = {"c0"};
  EXPECT_THAT(axis_facts(problem).error().to_string(), HasSubstr("note it must stay whole"));
}

TEST(AxisFacts, FactorsAreDescribedForPeople) {
  const DivisionProblem problem = pointwise({61, 8192});
  const auto facts = axis_facts(problem).value();
  EXPECT_EQ(describe_factors(problem, facts[0]), "c0 is 61 long and divides into 1 or 61 parts");
  EXPECT_EQ(describe_factors(problem, facts[1]),
            "c1 is 128 sticks long and divides into 1, 2, 4, 8, 16, 32, 64 or 128 parts");
  DivisionProblem blocked = problem;
  blocked.blocked = {"c0"};
  EXPECT_EQ(describe_factors(blocked, axis_facts(blocked).value()[0]),
            "c0 is 61 long and may only be cut into 1 part");
}

}  // namespace
}  // namespace spyre
