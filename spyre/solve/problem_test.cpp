#include "spyre/solve/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spyre/solve/bounds.h"
#include "spyre/solve/generate.h"
#include "spyre/solve/test_problems.h"
#include "spyre/solve/text.h"
#include "spyre/solve/validate.h"

namespace spyre::solve {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text) {
  const auto result = parse_problem(text, "test");
  return result.ok() ? "" : result.error().to_string();
}

TEST(ProblemText, EveryFieldPrintsAndParsesBack) {
  const std::string text =
      "capacity 4096\n"
      "buffer scores  live 0..3  size 512  uses 3\n"
      "buffer probs  live 2..5  size 512  uses 2  in_place scores\n"
      "buffer table  live 0..9  size 96  align 32  uses 4  saves 288  input  at 1024\n"
      "buffer index  live 0..2  size 128  uses 2  ineligible index tensor\n";
  EXPECT_EQ(print_problem(parsed(text)), text);
  EXPECT_EQ(parsed(print_problem(parsed(text))), parsed(text));
}

TEST(ProblemText, RandomProblemsPrintAndParseBack) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Problem problem =
        generate_problem({.in_place = 0.5, .inputs = 0.3, .fixed = 0.1, .ineligible = 0.1}, seed);
    const auto again = parse_problem(print_problem(problem), "test");
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.error().to_string();
    EXPECT_EQ(again.value(), problem) << "seed " << seed;
  }
}

TEST(ProblemText, ErrorsNameTheLineAndWhatIsAllowed) {
  EXPECT_THAT(refusal("capacity ten\n"), HasSubstr("test:1: found 'ten', expected the capacity"));
  EXPECT_THAT(refusal("capacity 9\n\nbufer a\n"),
              HasSubstr("test:3: found 'bufer', expected 'capacity' or 'buffer'"));
  EXPECT_THAT(refusal("buffer a live 0-3 size 1\n"),
              HasSubstr("found '0-3', expected a lifetime such as 0..3"));
  EXPECT_THAT(refusal("buffer a live 0..3 size 1 colour 4\n"),
              HasSubstr("found 'colour', expected live, size"));
  EXPECT_THAT(refusal("buffer a live 0..3 size 1 in_place b\n"),
              HasSubstr("in_place parent 'b' is no buffer here"));
}

TEST(ProblemText, ReadsTheCsvOfPublicSuites) {
  const auto read =
      parse_allocation_csv("id,lower,upper,size\nb1,0,3,4\nb2,3,9,5\n", "test", Bytes(12), Bytes(1));
  const Problem& problem = read.value();
  ASSERT_EQ(problem.buffers.size(), 2u);
  EXPECT_EQ(problem.buffers[1].live, (Lifetime{Step(3), Step(9)}));
  EXPECT_EQ(problem.buffers[1].size, Bytes(5));
  EXPECT_EQ(problem.capacity, Bytes(12));
  EXPECT_FALSE(parse_allocation_csv("name,size\n", "test", Bytes(12), Bytes(1)).ok());
  EXPECT_FALSE(parse_allocation_csv("id,lower,upper,size\nb1,0,3\n", "test", Bytes(12), Bytes(1)).ok());
}

TEST(Buffer, LivesFromItsFirstUseToOnePastItsLast) {
  const std::vector<int64_t> uses = {3, 5, 8};
  const Buffer b = buffer_of_uses("b", Bytes(100), uses, false).value();
  EXPECT_EQ(b.live, (Lifetime{Step(3), Step(9)}));
  EXPECT_EQ(b.saves, Bytes(300)) << "two reads and the write";
  EXPECT_EQ(buffer_of_uses("b", Bytes(100), uses, true).value().saves, Bytes(200))
      << "three reads less the fetch";
  EXPECT_EQ(buffer_of_uses("b", Bytes(100), uses, false, Step(12)).value().live.end, Step(12));
  EXPECT_EQ(buffer_of_uses("b", Bytes(100), uses, false, Step(4)).value().live.end, Step(9));
}

TEST(CheckProblem, RefusesWhatNoSolverShouldSee) {
  EXPECT_THAT(refusal("buffer a live 0..3 size 0\n"), HasSubstr("'a' has size 0"));
  EXPECT_THAT(refusal("buffer a live 3..3 size 1\n"), HasSubstr("'a' lives from step 3 to 3"));
  EXPECT_THAT(refusal("buffer a live 0..2 size 1 uses 3\n"), HasSubstr("3 uses in a life of 2 steps"));
  EXPECT_THAT(refusal("buffer a live 0..2 size 1\nbuffer a live 0..2 size 1\n"),
              HasSubstr("two buffers are called 'a'"));
  EXPECT_THAT(refusal("capacity 100\nbuffer a live 0..2 size 1 at 64\n"),
              HasSubstr("expected a multiple of 128"));
  EXPECT_THAT(
      refusal("capacity 9\nbuffer a live 0..2 size 5 align 1 at 0\nbuffer b live 1..3 size 5 align 1 at 4\n"),
      HasSubstr("'a' and 'b' are fixed on the same bytes"));
}

TEST(CheckProblem, InPlacePairsShareExactlyOneStepAndFit) {
  const std::string parent = "capacity 99\nbuffer p live 0..5 size 20 uses 2\n";
  EXPECT_EQ(refusal(parent + "buffer c live 4..9 size 15 uses 2 in_place p\n"), "");
  EXPECT_THAT(refusal(parent + "buffer c live 3..9 size 15 uses 2 in_place p\n"),
              HasSubstr("parent.end is 5, child.begin + 1 is 4"));
  EXPECT_THAT(refusal(parent + "buffer c live 4..9 size 21 uses 2 in_place p\n"),
              HasSubstr("a child may not be larger"));
  EXPECT_THAT(refusal("buffer p live 3..4 size 9\nbuffer c live 3..9 size 9 in_place p\n"),
              HasSubstr("never read"));
  EXPECT_EQ(refusal("buffer p live 3..4 size 9 input\nbuffer c live 3..9 size 9 in_place p\n"), "");
}

// Two buffers live together, then one alone:
//   128 |   +b--+        b over a; c takes a's place when a's last reader writes it.
//     0 | +a--+c-----
TEST(Validate, AcceptsNeighboursAndHandOvers) {
  const Problem problem = parsed(
      "capacity 256\nbuffer a live 0..3 size 128 uses 2\nbuffer b live 1..3 size 128\n"
      "buffer c live 2..6 size 128 in_place a\n");
  EXPECT_TRUE(validate(problem, {{Bytes(0), Bytes(128), Bytes(0)}}).ok());
  EXPECT_TRUE(validate(problem, {{Bytes(0), Bytes(128), std::nullopt}}).ok());
}

TEST(Validate, NamesTheFirstPairThatCollides) {
  const Problem problem = parsed(
      "capacity 256\nbuffer a live 0..3 size 128 uses 2\nbuffer b live 1..3 size 128\n"
      "buffer c live 2..6 size 128 in_place a\n");
  const auto why = [&](Placement p) { return validate(problem, p).error().to_string(); };
  EXPECT_THAT(why({{Bytes(0), Bytes(0), std::nullopt}}),
              HasSubstr("'a' at 0 and 'b' at 0 are live together"));
  EXPECT_THAT(why({{std::nullopt, Bytes(0), Bytes(0)}}), HasSubstr("'b' at 0 and 'c' at 0"));
  EXPECT_THAT(why({{Bytes(64), std::nullopt, std::nullopt}}), HasSubstr("not a multiple of 128"));
  EXPECT_THAT(why({{Bytes(256), std::nullopt, std::nullopt}}), HasSubstr("leaves the capacity of 256"));
  EXPECT_THAT(why({{Bytes(0)}}), HasSubstr("1 offsets for 3 buffers"));
}

TEST(Validate, HoldsFixedAndBarredBuffersToTheirWord) {
  const Problem problem =
      parsed("capacity 256\nbuffer f live 0..3 size 128 at 128\nbuffer x live 0..3 size 9 ineligible no\n");
  EXPECT_TRUE(validate(problem, {{Bytes(128), std::nullopt}}).ok());
  EXPECT_THAT(validate(problem, {{Bytes(0), std::nullopt}}).error().message,
              HasSubstr("'f' is fixed at 128"));
  EXPECT_THAT(validate(problem, {{std::nullopt, std::nullopt}}).error().message, HasSubstr("but not placed"));
  EXPECT_THAT(validate(problem, {{Bytes(128), Bytes(0)}}).error().message,
              HasSubstr("'x' is placed but ineligible"));
}

// Three buffers of 100 bytes meet at step 1 in a capacity of 200; each saves 100 per use.
TEST(Bounds, ThePeakAndWhatMustStayOffChip) {
  const Problem problem = parsed(
      "capacity 200\nbuffer a live 0..2 size 100 align 1 uses 2\nbuffer b live 1..3 size 100 align 1 uses 2\n"
      "buffer c live 1..2 size 100 align 1 uses 1\n");
  EXPECT_EQ(peak_live_bytes(problem), Bytes(300));
  EXPECT_EQ(unavoidable_off_chip(problem), Bytes(100)) << "the cheapest of the three";
}

TEST(Bounds, AHandOverNeedsNoSecondSlot) {
  const Problem problem = parsed(
      "capacity 100\nbuffer a live 0..2 size 100 align 1 uses 2\nbuffer b live 1..3 size 100 align 1 "
      "in_place a\n");
  EXPECT_EQ(peak_live_bytes(problem), Bytes(200));
  EXPECT_EQ(unavoidable_off_chip(problem), Bytes(0));
}

TEST(Bounds, OddSizesCountTheirPadding) {
  // 13 and 12 bytes, both aligned to 10 in 30: 0..13 and 20..32 do not fit although 25 bytes would.
  const Problem problem =
      parsed("capacity 30\nbuffer a live 0..2 size 13 align 10\nbuffer b live 0..2 size 12 align 10\n");
  EXPECT_GT(unavoidable_off_chip(problem), Bytes(0));
}

}  // namespace
}  // namespace spyre::solve
