#include "spyre/passes/divide/division/choose_splits.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "spyre/passes/divide/division/matmul_split.h"
#include "spyre/passes/divide/division/span.h"
#include "spyre/passes/divide/division/span_reduction.h"
#include "spyre/passes/divide/division/split_rules.h"
#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::matmul;
using test::pointwise;
using test::tensor;
using testing::HasSubstr;

TEST(DivideWork, FloorsComeFirstAndTheRestIsDistributed) {
  EXPECT_EQ(choose_splits(pointwise({4096, 65536})).value(), (Splits{{"c0", 16}, {"c1", 2}}));
}

TEST(DivideWork, AMatmulWithoutFloorsIsPlanned) {
  EXPECT_EQ(choose_splits(matmul(512, 4096, 4096)).value(), (Splits{{"k", 1}, {"m", 4}, {"n", 8}}));
}

TEST(DivideWork, AMatmulWithFloorsIsNot) {
  // The weight of 384 MiB needs n in two; then n, 768 sticks long, takes all cores.
  EXPECT_EQ(choose_splits(matmul(512, 49152, 4096)).value(), (Splits{{"k", 1}, {"m", 1}, {"n", 32}}));
}

TEST(DivideWork, AHintedMatmulIsLeftAlone) {
  DivisionProblem problem = matmul(512, 4096, 4096);
  problem.hints = {{"m", 2}};
  EXPECT_EQ(choose_splits(problem).value(), (Splits{{"k", 1}, {"m", 2}, {"n", 1}}));
}

TEST(DivideWork, OneCoreIsNeverSplit) {
  DivisionProblem problem = matmul(512, 4096, 4096);
  problem.cores = 1;
  EXPECT_EQ(choose_splits(problem).value(), (Splits{{"k", 1}, {"m", 1}, {"n", 1}}));
}

TEST(DivideWork, ASpanThatNoSplitReducesIsRefused) {
  DivisionProblem deep{.op = "add", .axes = {{"b", 32}, {"r", 8192}, {"c", 17408}}};
  deep.tensors = {tensor("x", {8192, 272, 32, 64}, {"r", "floor(c/64)", "b", "Mod(c, 64)"})};
  EXPECT_EQ(choose_splits(deep).error().to_string(),
            "op 'add': 'x' spans 272.00 MiB of device memory, a core reaches 256.00 MiB\n"
            "  note x is [8192, 272, 32, 64] on the card, 2 bytes an element; splits {b: 1, c: 1, r: 32}\n"
            "  note r is 8192 long and divides into 1, 2, 4, 8, 16, 32, 64, 128, ... parts; 32 cores are "
            "available\n"
            "  try  running it in 2 tiles along r: a core then spans 136.00 MiB");
}

TEST(DivideWork, WithACostTheCheapestLegalDivisionWins) {
  // Execution time alone, without the planner's preferences.
  const SplitCost execution = [](const DivisionProblem& p, const Splits& s) {
    return matmul_score(p, s)->execution();
  };
  const DivisionProblem problem = matmul(512, 1024, 4096);
  const Splits seed = choose_splits(problem).value();
  const Splits best = choose_splits(problem, execution).value();
  EXPECT_LE(execution(problem, best), execution(problem, seed));
  const std::vector<Splits> all = legal_splits(problem, {}, 1000).value();
  for (const Splits& other : all) {
    EXPECT_GE(execution(problem, other), execution(problem, best)) << to_string(other);
  }
}

TEST(DivideWork, EveryAnswerIsLegalAndNothingIsRefusedWhoseFloorsFit) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int answered = 0, refused = 0;
  for (int round = 0; round < 400; ++round) {
    const std::vector<int64_t> shape = {pick(1, 40), pick(1, 12), pick(1, 700)};
    DivisionProblem problem = pointwise(shape);
    problem.tensors[0] = tensor("x", {shape[1], ceil_div(shape[2], 64), shape[0], 64},
                                {"c1", "floor(c2/64)", "c0", "Mod(c2, 64)"});
    problem.cores = pick(1, 32);
    problem.span_limit = Bytes(128 * pick(1, shape[0] * shape[1] * ceil_div(shape[2], 64)));
    if (pick(0, 3) == 0) problem.blocked.insert("c" + std::to_string(pick(0, 2)));
    const auto facts = axis_facts(problem).value();
    const auto floors = span_floors(problem);
    const auto splits = choose_splits(problem);
    ASSERT_TRUE(floors.ok());  // nothing is reduced
    if (splits.ok()) {
      ++answered;
      EXPECT_TRUE(is_legal(problem, facts, floors.value(), splits.value())) << to_string(splits.value());
      EXPECT_THAT(legal_splits(problem, floors.value(), 100000).value(), testing::Contains(splits.value()));
    } else {
      ++refused;
      EXPECT_THAT(splits.error().to_string(), HasSubstr("of device memory, a core reaches"));
      EXPECT_FALSE(std::ranges::all_of(problem.tensors, [&](const DivisionTensor& t) {
        return span_fits(problem, t, facts, floors.value());
      }));
    }
  }
  // The limits are drawn so that both happen often.
  EXPECT_GT(answered, 100);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace spyre
