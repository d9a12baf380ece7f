#include "spyre/passes/divide/division/division_hints.h"

#include <gmock/gmock.h>

#include "spyre/base/log.h"
#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::pointwise;
using test::tensor;
using testing::ElementsAre;

using Hints = std::vector<std::pair<std::string, int64_t>>;

std::string hinted(DivisionProblem problem, Hints hints, const Splits& floors = {}) {
  problem.hints = std::move(hints);
  const auto splits = apply_hints(problem, floors);
  return splits.ok() ? to_string(splits.value()) : splits.error().to_string();
}

class DivisionHints : public testing::Test {
 protected:
  void SetUp() override {
    before_ =
        set_log_sink([this](LogLevel, std::string_view, std::string_view text) { log_.emplace_back(text); });
  }
  void TearDown() override { set_log_sink(before_); }

  std::vector<std::string> log_;

 private:
  LogSink before_;
};

TEST_F(DivisionHints, AreTheWholeAnswer) {
  EXPECT_EQ(hinted(pointwise({512, 1024}), {{"c1", 4}}), "{c0: 1, c1: 4}");
  EXPECT_THAT(log_, ElementsAre());
}

TEST_F(DivisionHints, ApplyInOrderAndSkipWhatTheCoresDoNotAllow) {
  EXPECT_EQ(hinted(pointwise({4, 8, 512}), {{"c0", 4}, {"c1", 8}, {"c2", 8}}), "{c0: 4, c1: 8, c2: 1}");
  EXPECT_THAT(log_,
              ElementsAre("op 'neg': work_div hint c2=8 is skipped: with {c0: 4, c1: 8, c2: 1} it would take "
                          "256 cores, 32 are available"));
  EXPECT_EQ(hinted(pointwise({4, 8, 512}), {{"c2", 8}, {"c1", 8}, {"c0", 4}}), "{c0: 4, c1: 1, c2: 8}");
}

TEST_F(DivisionHints, KeepWhatIsMandatoryElsewhere) {
  EXPECT_EQ(hinted(pointwise({512, 1024}), {{"c0", 4}}, {{"c1", 2}}), "{c0: 4, c1: 2}");
}

TEST_F(DivisionHints, BelowOneAreRefused) {
  EXPECT_EQ(hinted(pointwise({512, 1024}), {{"c0", 0}}),
            "op 'neg': work_div hint c0=0 is below 1\n  try  c0=1");
}

TEST_F(DivisionHints, BelowAFloorAreRefused) {
  EXPECT_EQ(hinted(pointwise({512, 1024}), {{"c1", 1}}, {{"c1", 4}}),
            "op 'neg': work_div hint c1=1 is below 4, which keeps every span within the limit\n  try  c1=4");
}

TEST_F(DivisionHints, OnBlockedAxesAreRefused) {
  DivisionProblem problem = pointwise({512, 1024});
  problem.blocked = {"c0"};
  EXPECT_EQ(hinted(problem, {{"c0", 4}}),
            "op 'neg': work_div hint c0=4 splits an axis that must stay whole\n  try  c0=1");
  EXPECT_EQ(hinted(problem, {{"c0", 1}}), "{c0: 1, c1: 1}");
}

TEST_F(DivisionHints, OutsideTheDomainAreRefused) {
  DivisionProblem problem = pointwise({512, 1024});
  problem.allowed = {{"c0", {1, 8}}};
  EXPECT_EQ(hinted(problem, {{"c0", 4}}),
            "op 'neg': work_div hint c0=4 is not a legal split\n"
            "  note c0 is 512 long and may only be cut into 1 or 8 parts\n"
            "  try  c0=1");
}

TEST_F(DivisionHints, ThatDoNotDivideTheSticksAreRefused) {
  EXPECT_EQ(hinted(pointwise({512, 384}), {{"c1", 4}}),
            "op 'neg': work_div hint c1=4 is not a legal split\n"
            "  note c1 is 6 sticks long and divides into 1, 2, 3 or 6 parts\n"
            "  try  c1=3");
}

TEST_F(DivisionHints, ThatSplitTwoReductionAxesAreRefused) {
  DivisionProblem sum{.op = "sum", .role = OpRole::kReduction, .axes = {{"r0", 4}, {"r1", 4}}};
  sum.tensors = {tensor("x", {4, 4, 64}, {"r0", "r1", "0"}), tensor("y", {1, 64}, {"0", "0"})};
  EXPECT_EQ(hinted(sum, {{"r0", 2}, {"r1", 2}}),
            "op 'sum': reduction axes r0, r1 would all be split by work_div hints; the card combines partial "
            "results of one\n"
            "  note splits {r0: 2, r1: 2}\n"
            "  try  reducing one axis after the other, in two operations");
  // A hint that the cores make us skip does not count.
  sum.cores = 2;
  EXPECT_EQ(hinted(sum, {{"r0", 2}, {"r1", 2}}), "{r0: 2, r1: 1}");
}

}  // namespace
}  // namespace spyre
