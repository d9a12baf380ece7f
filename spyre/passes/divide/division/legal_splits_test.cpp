#include "spyre/passes/divide/division/legal_splits.h"

#include <gmock/gmock.h>

#include <cmath>

#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::pointwise;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kAll = 1000;

std::vector<Splits> legal(const DivisionProblem& problem, const Splits& floors = {}, size_t limit = kAll) {
  return legal_splits(problem, floors, limit).value();
}

/// {x, y} pairs, in the order given.
std::vector<Splits> pairs(const std::vector<std::pair<int64_t, int64_t>>& splits) {
  std::vector<Splits> all;
  for (const auto& [first, second] : splits) all.push_back({{"c0", first}, {"c1", second}});
  return all;
}

// The four published enumerations; their axes x and y are c0 and c1 here.

TEST(LegalSplits, RunThroughBothAxesLastFastest) {
  EXPECT_EQ(legal(pointwise({8, 16 * 64})), pairs({{1, 1},
                                                   {1, 2},
                                                   {1, 4},
                                                   {1, 8},
                                                   {1, 16},
                                                   {2, 1},
                                                   {2, 2},
                                                   {2, 4},
                                                   {2, 8},
                                                   {2, 16},
                                                   {4, 1},
                                                   {4, 2},
                                                   {4, 4},
                                                   {4, 8},
                                                   {8, 1},
                                                   {8, 2},
                                                   {8, 4}}));
}

TEST(LegalSplits, StartAtTheFloor) {
  DivisionProblem problem = pointwise({8, 64});
  problem.cores = 8;
  problem.allowed = {{"c0", {1, 2, 4}}};
  EXPECT_EQ(legal(problem, {{"c0", 2}}), pairs({{2, 1}, {4, 1}}));
}

TEST(LegalSplits, LeaveBlockedAxesWhole) {
  DivisionProblem problem = pointwise({8, 16 * 64});
  problem.blocked = {"c1"};
  problem.allowed = {{"c0", {1, 2, 8}}};
  EXPECT_EQ(legal(problem), pairs({{1, 1}, {2, 1}, {8, 1}}));
}

TEST(LegalSplits, KeepEverySpanWithinTheLimit) {
  EXPECT_EQ(legal(pointwise({4096, 65536})), pairs({{1, 2},
                                                    {1, 4},
                                                    {1, 8},
                                                    {1, 16},
                                                    {1, 32},
                                                    {2, 2},
                                                    {2, 4},
                                                    {2, 8},
                                                    {2, 16},
                                                    {4, 2},
                                                    {4, 4},
                                                    {4, 8},
                                                    {8, 2},
                                                    {8, 4},
                                                    {16, 2}}));
}

TEST(LegalSplits, SplitOneReductionAxisAtMost) {
  DivisionProblem sum{.op = "sum", .role = OpRole::kReduction, .axes = {{"r0", 2}, {"r1", 3}}};
  sum.tensors = {test::tensor("x", {2, 3, 64}, {"r0", "r1", "0"}), test::tensor("y", {1, 64}, {"0", "0"})};
  EXPECT_THAT(legal(sum), ElementsAre(Splits{{"r0", 1}, {"r1", 1}}, Splits{{"r0", 1}, {"r1", 3}},
                                      Splits{{"r0", 2}, {"r1", 1}}));
}

TEST(LegalSplits, StopAtTheLimit) {
  EXPECT_EQ(legal(pointwise({8, 16 * 64}), {}, 3), pairs({{1, 1}, {1, 2}, {1, 4}}));
  EXPECT_THAT(legal(pointwise({8, 16 * 64}), {}, 0), IsEmpty());
}

TEST(LegalSplits, TheCheapestIsFoundAndTheSeedWinsTies) {
  const DivisionProblem problem = pointwise({8, 16 * 64});
  const Splits seed = {{"c0", 8}, {"c1", 4}};
  const auto cheapest = [&](const SplitCost& cost) {
    return cheapest_split(problem, {}, seed, cost).value();
  };
  EXPECT_EQ(cheapest([](const auto&, const Splits&) { return 1.0; }), seed);
  EXPECT_EQ(cheapest([](const auto&, const Splits& s) { return -static_cast<double>(cores_used(s)); }), seed);
  EXPECT_EQ(cheapest([](const auto&, const Splits& s) {
              return std::abs(static_cast<double>(split_of(s, "c1") - 8)) +
                     static_cast<double>(split_of(s, "c0"));
            }),
            (Splits{{"c0", 1}, {"c1", 8}}));
}

TEST(LegalSplits, AnIllegalSeedNeverWins) {
  const DivisionProblem problem = pointwise({4096, 65536});
  EXPECT_EQ(cheapest_split(problem, {}, {{"c0", 1}, {"c1", 1}},
                           [](const auto&, const Splits& s) { return static_cast<double>(cores_used(s)); })
                .value(),
            (Splits{{"c0", 1}, {"c1", 2}}));
}

}  // namespace
}  // namespace spyre
