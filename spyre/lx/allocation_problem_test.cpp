#include "spyre/lx/allocation_problem.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "spyre/lx/test_graphs.h"

namespace spyre::lx {
namespace {

using test::Analysed;
using test::kTensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> buffer_names(const AllocationProblem& allocation) {
  std::vector<std::string> names;
  for (const solve::Buffer& buffer : allocation.problem.buffers) names.push_back(buffer.name);
  return names;
}

const solve::Buffer& buffer_named(const AllocationProblem& allocation, std::string_view name) {
  const auto& all = allocation.problem.buffers;
  return *std::find_if(all.begin(), all.end(), [&](const solve::Buffer& b) { return b.name == name; });
}

TEST(AllocationProblem, HoldsEveryTouchedBufferInTheOrderOfFirstTouches) {
  const Analysed two(test::laid_out(test::elementwise("y=64; x=64; a = exp x; b = add a y; c = neg b")));
  const AllocationProblem plain = allocation_problem(two.analysis, {.capacity = kTensor});
  EXPECT_THAT(buffer_names(plain), ElementsAre("x", "a", "y", "b", "c"));
  EXPECT_EQ(buffer_named(plain, "c").ineligible, "graph output");
  EXPECT_EQ(buffer_named(plain, "a").saves, kTensor * 2);
  EXPECT_TRUE(solve::check_problem(plain.problem).ok());
}

TEST(AllocationProblem, ResultsMayTakeOverTheirOperands) {
  const DeviceGraph graph = test::laid_out(test::elementwise("x=64; a = exp x; b = neg a; c = abs b"));
  const Analysed allowed(graph);
  EXPECT_THAT(buffer_named(allocation_problem(allowed.analysis, {.capacity = kTensor}), "b").in_place_parents,
              ElementsAre(1));
  const Analysed forbidden(graph, MoveSet::all().without({Move::kTakeOverSlot}));
  EXPECT_THAT(
      buffer_named(allocation_problem(forbidden.analysis, {.capacity = kTensor}), "b").in_place_parents,
      IsEmpty());
}

TEST(AllocationProblem, ABufferAndItsCopiesAreAnAllOrNothingGroup) {
  const Analysed disagree(test::laid_out(test::kRowsThenColumns));
  const AllocationProblem plain = allocation_problem(disagree.analysis, {.capacity = kTensor});
  ASSERT_THAT(buffer_names(plain), ElementsAre("x", "a", "a#1", "b"));
  EXPECT_GE(buffer_named(plain, "a").group, 0);
  EXPECT_EQ(buffer_named(plain, "a").group, buffer_named(plain, "a#1").group);
  EXPECT_EQ(buffer_named(plain, "x").group, -1);
  // What they save together is told apart, half to the buffer at least.
  EXPECT_EQ(buffer_named(plain, "a").saves + buffer_named(plain, "a#1").saves, kTensor * 4 * 2);
  EXPECT_GE(buffer_named(plain, "a").saves, buffer_named(plain, "a#1").saves);
}

TEST(AllocationProblem, TheFullOneOffersSegmentsAroundIdleGapsAsAlternatives) {
  const Analysed idle(test::laid_out(
      test::elementwise("x=64; y=64; a = exp x; b = neg a; c = abs a; d = exp y; e = neg a; f = abs a")));
  const AllocationProblem full = allocation_problem(idle.analysis, {.capacity = kTensor, .full = true});
  EXPECT_THAT(buffer_names(full), ElementsAre("x", "a", "a@1", "a@2", "b", "c", "y", "d", "e", "f"));
  EXPECT_EQ(buffer_named(full, "a").tensor, buffer_named(full, "a@1").tensor);
  EXPECT_TRUE(solve::are_alternatives(buffer_named(full, "a"), buffer_named(full, "a@2")));
  EXPECT_FALSE(solve::are_alternatives(buffer_named(full, "a@1"), buffer_named(full, "a@2")));
  const Analysed forbidden(idle.graph, MoveSet::all().without({Move::kEvict}));
  EXPECT_EQ(allocation_problem(forbidden.analysis, {.capacity = kTensor, .full = true}).problem,
            allocation_problem(forbidden.analysis, {.capacity = kTensor}).problem);
}

// Six readers of a, each followed by a node that does not touch it: five gaps, of which four are considered.
TEST(AllocationProblem, OnlyTheLongestIdleGapsAreConsidered) {
  std::string program = "x=64; y=64; a = exp x";
  for (int i = 0; i < 6; ++i)
    program += "; r" + std::to_string(i) + " = neg a; s" + std::to_string(i) + " = exp y";
  const Analysed many(test::laid_out(test::elementwise(program)));
  const AllocationProblem full = allocation_problem(many.analysis, {.capacity = kTensor, .full = true});
  const auto holdings = std::count_if(full.holdings.begin(), full.holdings.end(),
                                      [&](const Holding& h) { return h.buffer == many.id("a"); });
  EXPECT_LE(holdings, 1 + 14);
  EXPECT_GT(holdings, 1);
}

TEST(AllocationProblem, TheFullOneOffersLessOfTheRing) {
  const Analysed disagree(test::laid_out(test::rows_columns_rows()));
  const AllocationProblem full = allocation_problem(disagree.analysis, {.capacity = kTensor, .full = true});
  EXPECT_THAT(buffer_names(full), ElementsAre("x", "a", "a#1", "a@1", "b", "c"));
  EXPECT_EQ(buffer_named(full, "a@1").group, -1);
  EXPECT_EQ(buffer_named(full, "a@1").saves,
            kTensor * 4);  // the reader by rows; the other reads what is copied out
}

}  // namespace
}  // namespace spyre::lx
