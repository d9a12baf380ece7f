#include "spyre/passes/divide/division/span_reduction.h"

#include <gmock/gmock.h>

#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::pointwise;
using test::tensor;
using testing::HasSubstr;

TEST(SpanReduction, TensorsThatFitNeedNoSplit) {
  EXPECT_EQ(span_floors(pointwise({512, 1024})).value(), (Splits{{"c0", 1}, {"c1", 1}}));
}

TEST(SpanReduction, TheFewestCoresThatFitAreTaken) {
  EXPECT_EQ(span_floors(pointwise({4096, 65536})).value(), (Splits{{"c0", 1}, {"c1", 2}}));
  EXPECT_EQ(span_floors(test::matmul(512, 49152, 4096)).value(), (Splits{{"k", 1}, {"m", 1}, {"n", 2}}));
}

TEST(SpanReduction, AnOuterDimensionIsCutToOnePositionBeforeTheNextIsTried) {
  DivisionProblem tall{.op = "fill", .axes = {{"a", 4}, {"b", 4000000}, {"s", 64}}};
  tall.tensors = {tensor("y", {4, 4000000, 64}, {"a", "b", "s"})};
  EXPECT_EQ(span_floors(tall).value(), (Splits{{"a", 4}, {"b", 2}, {"s", 1}}));
}

TEST(SpanReduction, TheSearchEndsWhereADimensionKeepsTwoPositions) {
  // The best split of r is 32 and leaves 256 positions: cutting c or b as well would be for nothing.
  DivisionProblem deep{.op = "fill", .axes = {{"b", 32}, {"r", 8192}, {"c", 17408}}};
  deep.tensors = {tensor("y", {8192, 272, 32, 64}, {"r", "floor(c/64)", "b", "Mod(c, 64)"})};
  EXPECT_EQ(span_floors(deep).value(), (Splits{{"b", 1}, {"c", 1}, {"r", 32}}));
}

TEST(SpanReduction, AmongEquallyManyCoresTheLargestSpanWins) {
  // One dimension walked by two axes: 8 positions by a, 10 more for each step of b. Limit: 24 positions.
  DivisionProblem problem{.op = "fill", .axes = {{"a", 8}, {"b", 4}, {"s", 64}}};
  problem.tensors = {tensor("y", {40, 64}, {"a + 10*b", "s"})};
  problem.span_limit = Bytes(24 * 128);
  // Whole: 1 + 7 + 30 = 38 positions. a in 2: 1 + 3 + 30 = 34, no. b in 2: 1 + 7 + 10 = 18, fits.
  EXPECT_EQ(span_floors(problem).value(), (Splits{{"a", 1}, {"b", 2}, {"s", 1}}));
  // With room for 12: a in 4 leaves 32, b in 4 leaves 8, a and b in 2 leave 14. Only b in 4 fits.
  problem.span_limit = Bytes(12 * 128);
  EXPECT_EQ(span_floors(problem).value(), (Splits{{"a", 1}, {"b", 4}, {"s", 1}}));
  // Equal strides: a in 2 or b in 2 both take two cores; 1 + 3 + 30 = 34 against 1 + 7 + 10 = 18. Both
  // fit 36.
  problem.span_limit = Bytes(36 * 128);
  EXPECT_EQ(span_floors(problem).value(), (Splits{{"a", 2}, {"b", 1}, {"s", 1}}));
}

TEST(SpanReduction, SplitsOfOneTensorHoldForTheNext) {
  // x needs two parts of r; y, whose outermost dimension is c, starts from there.
  DivisionProblem problem{.op = "add", .axes = {{"r", 16}, {"c", 1024}}};
  problem.tensors = {tensor("x", {16, 16, 64}, {"r", "floor(c/64)", "Mod(c, 64)"}),
                     tensor("y", {16, 16, 64}, {"floor(c/64)", "r", "Mod(c, 64)"})};
  problem.span_limit = Bytes(128 * 128);  // half of a tensor
  problem.cores = 4;
  EXPECT_EQ(span_floors(problem).value(), (Splits{{"c", 2}, {"r", 2}}));
  problem.cores = 3;  // nothing is left for y: not an error here
  EXPECT_EQ(span_floors(problem).value(), (Splits{{"c", 1}, {"r", 2}}));
}

TEST(SpanReduction, BlockedAxesStayWhole) {
  DivisionProblem problem = pointwise({4096, 65536});
  problem.blocked = {"c1"};
  EXPECT_EQ(span_floors(problem).value(), (Splits{{"c0", 1}, {"c1", 1}}));
}

TEST(SpanReduction, OnlyAllowedSplitsAreTaken) {
  DivisionProblem problem = pointwise({4096, 65536});
  problem.allowed = {{"c1", {1, 8, 16}}};
  EXPECT_EQ(span_floors(problem).value(), (Splits{{"c0", 1}, {"c1", 8}}));
}

TEST(SpanReduction, SplittingTwoReductionAxesIsRefused) {
  // The sum of everything; r0 alone leaves one position of 16 * 128 bytes each, still over the limit.
  DivisionProblem sum{.op = "sum", .role = OpRole::kReduction, .axes = {{"r0", 4}, {"r1", 16}, {"s", 64}}};
  sum.tensors = {tensor("x", {4, 16, 64}, {"r0", "r1", "s"}), tensor("y", {1, 64}, {"0", "0"})};
  sum.span_limit = Bytes(8 * 128);
  EXPECT_EQ(
      span_floors(sum).error().to_string(),
      "op 'sum': reduction axes r0, r1 would all be split to keep every span within the limit; the card "
      "combines partial results of one\n"
      "  note splits {r0: 4, r1: 2, s: 1}\n"
      "  try  reducing one axis after the other, in two operations");
}

}  // namespace
}  // namespace spyre
