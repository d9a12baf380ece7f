#include "spyre/passes/divide/division/work_distribution.h"

#include <gmock/gmock.h>

#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::pointwise;
using test::tensor;

Splits distributed(const DivisionProblem& problem, const Splits& floors = {}) {
  return distribute_work(problem, floors).value();
}

/// max over dim 0 of [rows, columns].
DivisionProblem max_over_rows(int64_t rows, int64_t columns) {
  DivisionProblem problem{.op = "max", .role = OpRole::kReduction, .axes = {{"c", columns}, {"r", rows}}};
  problem.tensors = {tensor("x", {columns / 64, rows, 64}, {"floor(c/64)", "r", "Mod(c, 64)"}),
                     tensor("y", {columns / 64, 64}, {"floor(c/64)", "Mod(c, 64)"})};
  return problem;
}

TEST(WorkDistribution, TheLongestAxisTakesTheCores) {
  EXPECT_EQ(distributed(pointwise({512, 1024})), (Splits{{"c0", 32}, {"c1", 1}}));
}

TEST(WorkDistribution, AReductionAxisTakesWhatIsLeft) {
  EXPECT_EQ(distributed(max_over_rows(512, 1024)), (Splits{{"c", 16}, {"r", 2}}));
}

TEST(WorkDistribution, SmallWorkLeavesCoresIdle) {
  EXPECT_EQ(distributed(pointwise({4, 64})), (Splits{{"c0", 4}, {"c1", 1}}));
}

TEST(WorkDistribution, TheProductCountsNotWhatDividesTheCores) {
  EXPECT_EQ(distributed(pointwise({10, 384})), (Splits{{"c0", 10}, {"c1", 3}}));
}

TEST(WorkDistribution, AnAwkwardLongestAxisStillGoesFirst) {
  EXPECT_EQ(distributed(pointwise({3, 100, 4096})), (Splits{{"c0", 1}, {"c1", 25}, {"c2", 1}}));
}

TEST(WorkDistribution, AProjectionOfOneRowLandsOn25Cores) {
  EXPECT_EQ(distributed(test::matmul(1, 12800, 4096)), (Splits{{"k", 1}, {"n", 25}}));
  EXPECT_EQ(distributed(test::matmul(1, 25600, 4096)), (Splits{{"k", 1}, {"n", 25}}));
}

TEST(WorkDistribution, TiesKeepIterationOrder) {
  EXPECT_EQ(distributed(pointwise({64, 4096})), (Splits{{"c0", 32}, {"c1", 1}}));
}

TEST(WorkDistribution, FloorsAreKeptAndMayGrow) {
  EXPECT_EQ(distributed(pointwise({512, 1024}), {{"c1", 2}}), (Splits{{"c0", 16}, {"c1", 2}}));
  EXPECT_EQ(distributed(pointwise({4, 1024}), {{"c1", 2}}), (Splits{{"c0", 2}, {"c1", 16}}));
}

TEST(WorkDistribution, OnlyOneReductionAxisIsSplit) {
  DivisionProblem sum{.op = "sum", .role = OpRole::kReduction, .axes = {{"r0", 6}, {"r1", 8}, {"s", 64}}};
  sum.tensors = {tensor("x", {6, 8, 64}, {"r0", "r1", "s"}), tensor("y", {1, 64}, {"0", "0"})};
  EXPECT_EQ(distributed(sum), (Splits{{"r0", 1}, {"r1", 8}, {"s", 1}}));
  EXPECT_EQ(distributed(sum, {{"r0", 2}}), (Splits{{"r0", 6}, {"r1", 1}, {"s", 1}}));
  sum.axes[0].extent = 8;  // a tie: the first wins
  sum.tensors[0].device_size[0] = 8;
  EXPECT_EQ(distributed(sum), (Splits{{"r0", 8}, {"r1", 1}, {"s", 1}}));
}

TEST(WorkDistribution, ConstraintsAreRespected) {
  DivisionProblem problem = pointwise({512, 1024});
  problem.blocked = {"c0"};
  EXPECT_EQ(distributed(problem), (Splits{{"c0", 1}, {"c1", 16}}));
  problem.blocked.clear();
  problem.allowed = {{"c0", {1, 2, 4}}};
  EXPECT_EQ(distributed(problem), (Splits{{"c0", 4}, {"c1", 8}}));
}

TEST(WorkDistribution, ADynamicAxisRanksByItsLargestExtent) {
  DivisionProblem problem = pointwise({512, 1024});
  problem.axes[0].granularity = 8;
  EXPECT_EQ(distributed(problem), (Splits{{"c0", 8}, {"c1", 4}}));
}

}  // namespace
}  // namespace spyre
