#include "spyre/passes/divide/division/split_rules.h"

#include <gmock/gmock.h>

#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::pointwise;
using test::tensor;

std::string mandatory(const DivisionProblem& problem, const Splits& floors) {
  const auto splits = mandatory_splits(problem, axis_facts(problem).value(), floors);
  return splits.ok() ? to_string(splits.value()) : splits.error().to_string();
}

TEST(SplitRules, DomainsWithoutOneAreMandatory) {
  DivisionProblem problem = pointwise({12, 256});
  problem.allowed = {{"c0", {3, 6}}};
  EXPECT_EQ(mandatory(problem, {}), "{c0: 3, c1: 1}");
  EXPECT_EQ(mandatory(problem, {{"c0", 6}, {"c1", 2}}), "{c0: 6, c1: 2}");
}

TEST(SplitRules, AFloorOutsideItsDomainIsRefused) {
  DivisionProblem problem = pointwise({12, 256});
  problem.allowed = {{"c0", {1, 3}}};
  EXPECT_EQ(
      mandatory(problem, {{"c0", 2}}),
      "op 'neg': axis 'c0' must be cut in 2 to keep every span within the limit, which is not a legal split\n"
      "  note c0 is 12 long and may only be cut into 1 or 3 parts");
}

TEST(SplitRules, MandatorySplitsBeyondTheCoresAreRefused) {
  DivisionProblem problem = pointwise({12, 256});
  problem.allowed = {{"c0", {6}}};
  problem.cores = 8;
  EXPECT_EQ(mandatory(problem, {{"c1", 2}}),
            "op 'neg': the splits it needs, {c0: 6, c1: 2}, take 12 cores; 8 are available\n"
            "  note c0 in 6, the least its constraints allow; c1 in 2 to keep every span within the limit\n"
            "  try  SENCORES=12");
}

TEST(SplitRules, ConstraintsThatSplitTwoReductionAxesAreRefused) {
  DivisionProblem sum{.op = "sum", .role = OpRole::kReduction, .axes = {{"r0", 4}, {"r1", 4}}};
  sum.tensors = {tensor("x", {4, 4, 64}, {"r0", "r1", "0"}), tensor("y", {1, 64}, {"0", "0"})};
  sum.allowed = {{"r0", {2}}, {"r1", {2}}};
  EXPECT_EQ(mandatory(sum, {}),
            "op 'sum': reduction axes r0, r1 would all be split by spans and constraints; the card combines "
            "partial "
            "results of one\n"
            "  note splits {r0: 2, r1: 2}\n"
            "  try  reducing one axis after the other, in two operations");
}

// Published probes: a proposed division and one decided before are judged by different rules.
struct Probe {
  Splits splits;
  bool may_stay, legal;
};
void expect_probes(const DivisionProblem& problem, const Splits& floors, const std::vector<Probe>& probes) {
  const auto facts = axis_facts(problem).value();
  for (const Probe& probe : probes) {
    EXPECT_EQ(may_stay(problem, facts, floors, probe.splits), probe.may_stay) << to_string(probe.splits);
    EXPECT_EQ(is_legal(problem, facts, floors, probe.splits), probe.legal) << to_string(probe.splits);
  }
}

/// Axes of these extents that all choose sticks of the output; the stick itself is walked by none.
DivisionProblem plain(std::vector<DivisionAxis> axes) {
  DivisionProblem problem{.op = "fill", .axes = std::move(axes)};
  DivisionTensor output{.name = "out"};
  for (const DivisionAxis& axis : problem.axes) {
    output.device_size.push_back(axis.extent);
    output.coordinates.push_back(Expr::symbol(axis.name));
  }
  output.device_size.push_back(64);
  output.coordinates.push_back(Expr());
  problem.tensors = {output};
  return problem;
}

TEST(SplitRules, FloorsHoldForOldAndNewDivisions) {
  DivisionProblem problem = plain({{"x", 8}});
  problem.cores = 8;
  problem.allowed = {{"x", {1, 2, 4}}};
  expect_probes(problem, {{"x", 2}},
                {{{{"x", 1}}, false, false},
                 {{}, false, false},
                 {{{"x", 2}}, true, true},
                 {{{"x", 4}}, true, true},
                 {{{"x", 8}}, false, false}});
}

TEST(SplitRules, AnOldDivisionMayExceedTheCores) {
  expect_probes(plain({{"x", 8}, {"y", 16}}), {},
                {{{{"x", 1}, {"y", 1}}, true, true},
                 {{{"x", 4}, {"y", 4}}, true, true},
                 {{{"x", 8}, {"y", 16}}, true, false}});
}

TEST(SplitRules, BlockedAxesHoldForOldAndNewDivisions) {
  DivisionProblem problem = plain({{"x", 8}, {"y", 16}});
  problem.blocked = {"y"};
  problem.allowed = {{"x", {1, 2, 8}}};
  expect_probes(problem, {},
                {{{{"x", 2}, {"y", 1}}, true, true},
                 {{{"x", 2}, {"y", 2}}, false, false},
                 {{{"x", 4}, {"y", 1}}, false, false}});
}

TEST(SplitRules, AnOldDivisionMayExceedTheSpan) {
  const DivisionProblem problem = pointwise({4096, 65536});
  expect_probes(problem, {},
                {{{{"c0", 1}, {"c1", 1}}, true, false},
                 {{{"c0", 4}, {"c1", 1}}, true, false},
                 {{{"c0", 8}, {"c1", 4}}, true, true}});
}

}  // namespace
}  // namespace spyre
