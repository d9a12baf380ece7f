#include "spyre/solve/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "spyre/base/json.h"
#include "spyre/solve/bounds.h"
#include "spyre/solve/exact.h"
#include "spyre/solve/generate.h"
#include "spyre/solve/handover.h"
#include "spyre/solve/test_problems.h"
#include "spyre/solve/text.h"
#include "spyre/solve/validate.h"

namespace spyre::solve {
namespace {

/// The greatest saving, by trying every offset of every buffer. Knows nothing but the validator.
Bytes best_by_brute_force(const Problem& problem) {
  Placement placement{std::vector<std::optional<Bytes>>(problem.buffers.size())};
  Bytes best(-1);
  const std::function<void(size_t)> choose = [&](size_t next) {
    if (next == problem.buffers.size()) {
      if (validate(problem, placement).ok()) best = std::max(best, bytes_saved(problem, placement));
      return;
    }
    placement.offset[next] = std::nullopt;
    choose(next + 1);
    const Buffer& b = problem.buffers[next];
    for (Bytes at; at + b.size <= problem.capacity; at += b.align) {
      placement.offset[next] = at;
      choose(next + 1);
    }
    placement.offset[next] = std::nullopt;
  };
  choose(0);
  return best;
}

TEST(Solvers, UnknownNamesAreRefusedWithTheList) {
  const auto made = make_solver("magic");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message,
              testing::HasSubstr("greedy, firstfit, bestfit, simulated_annealing, exact, portfolio"));
  EXPECT_TRUE(make_solver("cpsat").ok()) << "upstream's name for its exact solver";
}

TEST(Solvers, RefuseAProblemThatBreaksItsContract) {
  Problem problem{.capacity = Bytes(10),
                  .buffers = {{.name = "a", .live = {Step(0), Step(1)}, .size = Bytes(0)}}};
  EXPECT_FALSE(place(problem).ok());
}

TEST(Solvers, AnEmptyProblemAndAnEmptyScratchpadAreAnswered) {
  for (const SolverRow& row : all_solvers()) {
    EXPECT_TRUE(place(Problem{.capacity = Bytes(0)}, row.name).ok()) << row.name;
    const Problem no_room = parsed("capacity 0\nbuffer a live 0..2 size 128\n");
    EXPECT_EQ(place(no_room, row.name).value().placement.offset[0], std::nullopt) << row.name;
  }
}

TEST(Solvers, EveryAnswerIsLegalAndRepeatable) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const GenerateOptions options = {.buffers = 25,
                                     .odd_sizes = 0.3,
                                     .in_place = 0.6,
                                     .inputs = 0.2,
                                     .fixed = seed % 3 == 0 ? 0.15 : 0,
                                     .ineligible = 0.1,
                                     .tensors = seed % 2 == 0 ? 0.4 : 0,
                                     .groups = seed % 4 == 0 ? 0.1 : 0,
                                     .capacity_to_peak = 0.4 + 0.02 * double(seed % 30)};
    const Problem problem = generate_problem(options, seed);
    for (const SolverRow& row : all_solvers()) {
      SCOPED_TRACE(testing::Message() << row.name << ", seed " << seed);
      const Deadline deadline(2'000'000);
      const Solution first = place(problem, row.name, deadline).value();
      const Status verdict = validate(problem, first.placement);
      ASSERT_TRUE(verdict.ok()) << verdict.error().to_string() << "\n" << print_problem(problem);
      EXPECT_EQ(place(problem, row.name, deadline).value().placement, first.placement);
      EXPECT_LE(bytes_saved(problem, first.placement),
                bytes_at_stake(problem) - unavoidable_off_chip(problem));
    }
  }
}

TEST(Solvers, ADeadlineOfNothingStillGivesALegalAnswer) {
  const Problem problem = generate_problem({.buffers = 60, .in_place = 0.3, .capacity_to_peak = 0.6}, 7);
  for (const SolverRow& row : all_solvers()) {
    const Solution solution = place(problem, row.name, Deadline(0)).value();
    EXPECT_TRUE(validate(problem, solution.placement).ok()) << row.name;
    EXPECT_FALSE(solution.optimal) << row.name;
  }
}

TEST(Solvers, FixedBuffersAreWorkedAround) {
  // The fixed one splits the capacity in two halves of 256; both others fit only one in each.
  const Problem problem = parsed(
      "capacity 640\nbuffer f live 2..4 size 128 at 256\nbuffer a live 0..4 size 256\nbuffer b live 1..5 "
      "size 256\n");
  for (const SolverRow& row : all_solvers()) {
    const Placement placement = place(problem, row.name).value().placement;
    EXPECT_TRUE(validate(problem, placement).ok()) << row.name;
    EXPECT_THAT(placement.offset, testing::Each(testing::Ne(std::nullopt))) << row.name;
  }
}

class ExactAgainstBruteForce : public testing::TestWithParam<int> {};

TEST_P(ExactAgainstBruteForce, FindsTheSameValueAndProvesIt) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const uint64_t full_seed = uint64_t(GetParam()) * 1000 + seed;
    GenerateOptions options = {.buffers = 6,
                               .steps = 6,
                               .longest_life = 4,
                               .most_units = 4,
                               .unit = Bytes(1),
                               .align = Bytes(1),
                               .in_place = 0.7,
                               .inputs = 0.2,
                               .capacity_to_peak = 0.5 + 0.1 * double(seed % 6)};
    if (GetParam() == 1) options.unit = options.align = Bytes(4), options.odd_sizes = 0.6;
    if (GetParam() == 2) options.fixed = 0.3;
    if (GetParam() == 3) options.tensors = 0.5, options.groups = 0.15;
    const Problem problem = generate_problem(options, full_seed);
    const Solution solution = place(problem, "exact").value();
    ASSERT_TRUE(validate(problem, solution.placement).ok()) << "seed " << full_seed;
    EXPECT_TRUE(solution.optimal) << "seed " << full_seed;
    EXPECT_EQ(bytes_saved(problem, solution.placement), best_by_brute_force(problem))
        << "seed " << full_seed << "\n"
        << print_problem(problem);
  }
}

INSTANTIATE_TEST_SUITE_P(Plain0Odd1Fixed2Choices3, ExactAgainstBruteForce, testing::Values(0, 1, 2, 3));

TEST(HandOvers, ASlotGoesToOneChildAndTheLargestAreServed) {
  // Bit 0 is P, bit 1 is Q: a takes P's slot, b takes Q's, c finds both taken.
  EXPECT_EQ(most_room_handed_over({{1, 0b10}, {2, 0b11}, {3, 0b01}}), 5);
  // a first takes P's slot, then moves to Q's for b.
  EXPECT_EQ(most_room_handed_over({{3, 0b11}, {2, 0b01}}), 5);
  EXPECT_EQ(most_room_handed_over({}), 0);
}

/// Three children of one parent: only one of them needs no room of its own while the parent is live.
TEST(HandOvers, AreCountedOnceWhenAPlacementIsProven) {
  const Problem problem = parsed(
      "capacity 512\nbuffer p live 0..3 size 256 uses 3\nbuffer a live 2..4 size 256 in_place p\n"
      "buffer b live 2..4 size 128 in_place p\nbuffer c live 2..4 size 256 in_place p\n");
  const Solution solution = place(problem, "exact").value();
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(bytes_saved(problem, solution.placement), best_by_brute_force(problem));
  EXPECT_LT(bytes_saved(problem, solution.placement), bytes_at_stake(problem));
}

struct SwitchedOff {
  const char* name;
  SelectTricks tricks;
};

class ExactTricks : public testing::TestWithParam<SwitchedOff> {};

TEST_P(ExactTricks, SwitchedOffLeaveTheAnswerAsItIs) {
  for (uint64_t seed = 100; seed < 130; ++seed) {
    const Problem problem = generate_problem({.buffers = 13,
                                              .steps = 10,
                                              .longest_life = 4,
                                              .most_units = 7,
                                              .odd_sizes = seed % 2 == 0 ? 0.4 : 0,
                                              .in_place = 0.6,
                                              .fixed = seed % 5 == 0 ? 0.2 : 0,
                                              .capacity_to_peak = 0.5 + 0.05 * double(seed % 10)},
                                             seed);
    const Solution all = place(problem, "exact").value();
    const Solution without = make_exact(GetParam().tricks)->solve(problem, Deadline::none());
    ASSERT_TRUE(validate(problem, without.placement).ok()) << "seed " << seed;
    EXPECT_TRUE(without.optimal) << "seed " << seed;
    EXPECT_EQ(bytes_saved(problem, without.placement), bytes_saved(problem, all.placement))
        << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(OneAtATime, ExactTricks,
                         testing::Values(SwitchedOff{"Decompose", {.pack = {.decompose = false}}},
                                         SwitchedOff{"Lift", {.pack = {.lift = false}}},
                                         SwitchedOff{"PackDominance", {.pack = {.dominance = false}}},
                                         SwitchedOff{"Memory", {.pack = {.memory = false}}},
                                         SwitchedOff{"Jump", {.pack = {.jump = false}}},
                                         SwitchedOff{"Whole", {.whole = false}},
                                         SwitchedOff{"Surplus", {.surplus = false}},
                                         SwitchedOff{"Learn", {.learn = false}},
                                         SwitchedOff{"SelectDominance", {.dominance = false}}),
                         [](const auto& param) { return param.param.name; });

/// A pattern upstream names but does not spell out; the file says what it shows.
TEST(Corpus, AMixtureOfExpertsIsPlacedWhole) {
  const std::string path = SPYRE_PLACEMENT_CORPUS "/moe_mlp.place";
  const Problem problem = parse_problem(read_text(path).value(), path).value();
  const Solution ours = place(problem).value();
  EXPECT_TRUE(validate(problem, ours.placement).ok());
  EXPECT_EQ(bytes_saved(problem, ours.placement), bytes_at_stake(problem));
  const Solution greedy = place(problem, "greedy").value();
  EXPECT_LT(bytes_saved(problem, greedy.placement), bytes_at_stake(problem)) << "else the case shows nothing";
}

/// Public static-allocation instances: every buffer fits in the capacity of the file's name.
class PublicInstance : public testing::TestWithParam<std::string> {};

TEST_P(PublicInstance, FitsIntoItsCapacity) {
  const std::string path = SPYRE_PLACEMENT_CORPUS "/minimalloc/" + GetParam();
  const int64_t capacity = std::stoll(GetParam().substr(GetParam().find('.') + 1));
  const Problem problem =
      parse_allocation_csv(read_text(path).value(), path, Bytes(capacity), Bytes(1)).value();
  const Solution solution = place(problem, "exact", Deadline(4'000'000'000)).value();
  EXPECT_TRUE(validate(problem, solution.placement).ok());
  EXPECT_EQ(bytes_saved(problem, solution.placement), bytes_at_stake(problem));
  EXPECT_TRUE(solution.optimal);
}

INSTANTIATE_TEST_SUITE_P(Corpus, PublicInstance,
                         testing::Values("A.1048576.csv", "C.1048576.csv", "D.1048576.csv", "E.1048576.csv",
                                         "G.1048576.csv", "H.1048576.csv", "I.1048576.csv", "input.12.csv"),
                         [](const auto& param) { return param.param.substr(0, param.param.find('.')); });

}  // namespace
}  // namespace spyre::solve
