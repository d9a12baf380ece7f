#include "spyre/solve/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spyre/solve/bounds.h"
#include "spyre/solve/generate.h"
#include "spyre/solve/solver.h"
#include "spyre/solve/test_problems.h"
#include "spyre/solve/text.h"
#include "spyre/solve/validate.h"

namespace spyre::solve {
namespace {

// A fills the scratchpad, is idle from 3 to 6 and is read again; B wants all of it meanwhile.
constexpr const char* kEviction =
    "capacity 256\n"
    "buffer A live 0..9 size 256 uses 6 saves 1280 tensor 0\n"
    "buffer A@1 live 0..3 size 256 uses 3 saves 512 tensor 0\n"
    "buffer A@2 live 6..9 size 256 uses 3 saves 512 input tensor 0\n"
    "buffer B live 3..6 size 256 uses 3 saves 768\n";

TEST(Alternatives, ATensorGivesItsPlaceUpWhileItRestsWhenThatPays) {
  const Problem problem = parsed(kEviction);
  for (const char* solver : {"exact", "portfolio"}) {
    const Solution solution = place(problem, solver).value();
    EXPECT_TRUE(solution.optimal);
    EXPECT_EQ(bytes_saved(problem, solution.placement), Bytes(512 + 512 + 768)) << solver;
    EXPECT_FALSE(solution.placement.offset[0].has_value()) << solver;
  }
}

TEST(Alternatives, ATensorKeepsItsPlaceWhenThatPaysMore) {
  Problem problem = parsed(kEviction);
  problem.buffers[3].saves = Bytes(128);
  const Solution solution = place(problem).value();
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(bytes_saved(problem, solution.placement), Bytes(1280));
}

TEST(Alternatives, CountOnceInWhatIsAtStake) {
  EXPECT_EQ(bytes_at_stake(parsed(kEviction)), Bytes(1280 + 768));
}

TEST(Alternatives, TheJudgeRefusesTwoThatMeet) {
  const Problem problem = parsed(kEviction);
  const Placement both{{Bytes(0), Bytes(0), std::nullopt, std::nullopt}};
  EXPECT_THAT(validate(problem, both).error().message, testing::HasSubstr("alternatives"));
  const Placement parts{{std::nullopt, Bytes(0), Bytes(0), std::nullopt}};
  EXPECT_TRUE(validate(problem, parts).ok());
}

// The source fits, its copy does not beside C: one without the other is worth nothing.
constexpr const char* kSuite =
    "capacity 512\n"
    "buffer source live 0..3 size 128 uses 2 saves 100 group 0\n"
    "buffer copy live 2..6 size 384 uses 2 saves 900 group 0\n"
    "buffer C live 4..7 size 256 uses 2 saves 600\n";

TEST(Groups, ArePlacedWholeOrNotAtAll) {
  for (const SolverRow& row : all_solvers()) {
    const Problem problem = parsed(kSuite);
    const Placement placement = place(problem, row.name).value().placement;
    EXPECT_TRUE(validate(problem, placement).ok()) << row.name;
    EXPECT_EQ(placement.offset[0].has_value(), placement.offset[1].has_value()) << row.name;
  }
  const Problem problem = parsed(kSuite);
  EXPECT_EQ(bytes_saved(problem, place(problem).value().placement), Bytes(1000));
}

// The copy serves what the late part would serve again: the two sources do not meet, but copy and part do.
TEST(Groups, ACopyAndALaterPartOfOneTensorAreAlternatives) {
  const Problem problem = parsed(
      "capacity 1024\n"
      "buffer source live 0..3 size 128 uses 2 saves 100 tensor 0 group 0\n"
      "buffer copy live 2..8 size 128 uses 3 saves 900 tensor 0 group 0\n"
      "buffer late live 6..8 size 128 uses 2 saves 400 tensor 0\n");
  for (const SolverRow& row : all_solvers()) {
    const Placement placement = place(problem, row.name).value().placement;
    EXPECT_TRUE(validate(problem, placement).ok()) << row.name;
  }
  EXPECT_EQ(bytes_saved(problem, place(problem).value().placement), Bytes(1000));
  EXPECT_EQ(bytes_at_stake(problem), Bytes(1000));
}

TEST(Groups, WithABarredMemberStayOffChip) {
  Problem problem = parsed(kSuite);
  problem.buffers[1].ineligible = "because";
  for (const SolverRow& row : all_solvers()) {
    EXPECT_EQ(bytes_saved(problem, place(problem, row.name).value().placement), Bytes(600)) << row.name;
  }
  EXPECT_EQ(bytes_at_stake(problem), Bytes(600));
}

TEST(Groups, MustBeOneStretchOfTime) {
  Problem problem = parsed(kSuite);
  problem.buffers[2].group = 0;
  problem.buffers[2].live = {Step(8), Step(9)};
  problem.buffers[2].uses = 1;
  EXPECT_THAT(check_problem(problem).error().message, testing::HasSubstr("one span of time"));
}

TEST(Choices, PrintAndParseBack) {
  for (const char* text : {kEviction, kSuite}) {
    EXPECT_EQ(parsed(print_problem(parsed(text))), parsed(text));
  }
}

// The default starts from the answers of the fast solvers, so it is never worse.
TEST(Choices, ThePortfolioSavesAtLeastWhatTheFastSolversSave) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const GenerateOptions options = {.buffers = 40,
                                     .in_place = 0.3,
                                     .tensors = 0.5,
                                     .groups = 0.1,
                                     .capacity_to_peak = 0.2 + 0.03 * double(seed)};
    const Problem problem = generate_problem(options, seed);
    const Deadline deadline(200'000);
    const Bytes best = bytes_saved(problem, place(problem, "portfolio", deadline).value().placement);
    EXPECT_LE(best, bytes_at_stake(problem) - unavoidable_off_chip(problem));
    for (const char* solver : {"greedy", "firstfit", "bestfit"}) {
      EXPECT_GE(best, bytes_saved(problem, place(problem, solver, deadline).value().placement))
          << solver << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace spyre::solve
