#include "spyre/passes/divide/division/division_problem.h"

#include <gmock/gmock.h>

#include "spyre/passes/divide/division/test_problems.h"

namespace spyre {
namespace {

using test::pointwise;
using testing::HasSubstr;

std::string refusal(const DivisionProblem& problem) {
  const Status status = check_problem(problem);
  return status.ok() ? "accepted" : status.error().to_string();
}

TEST(DivisionProblem, NoCoresAtAllAreRefused) {
  DivisionProblem problem = pointwise({4, 64});
  problem.cores = 1;
  EXPECT_EQ(refusal(problem), "accepted");
  problem.cores = 32;
  EXPECT_EQ(refusal(problem), "accepted");
  problem.cores = 0;
  EXPECT_EQ(refusal(problem), "op 'neg': work cannot be divided over 0 cores\n  try  SENCORES=1");
}

TEST(DivisionProblem, ADynamicStickAxisIsRefused) {
  DivisionProblem problem = pointwise({4, 128});
  problem.axes[0].granularity = 2;
  EXPECT_EQ(refusal(problem), "accepted");
  problem.axes[1].granularity = 64;
  EXPECT_THAT(refusal(problem), HasSubstr("op 'neg': axis 'c1' is dynamic and runs along the stick of 'x'; a "
                                          "stick axis has a fixed size\n  try  "));
}

TEST(DivisionProblem, ADynamicMatmulIsRefused) {
  DivisionProblem problem = test::matmul(64, 128, 128);
  problem.axes[0].granularity = 16;
  EXPECT_THAT(refusal(problem),
              HasSubstr("op 'batchmatmul': axis 'm' is dynamic, and a matmul is planned for "
                        "fixed sizes only\n  try  "));
}

TEST(DivisionProblem, NamesThatAreNoAxisAreRefused) {
  DivisionProblem hinted = pointwise({4, 64});
  hinted.hints = {{"rows", 2}};
  EXPECT_EQ(refusal(hinted), "op 'neg': a work_div hint names 'rows', the axes are c0, c1");
  DivisionProblem blocked = pointwise({4, 64});
  blocked.blocked = {"c7"};
  EXPECT_EQ(refusal(blocked), "op 'neg': a blocked axis names 'c7', the axes are c0, c1");
  DivisionProblem stray = pointwise({4, 64});
  stray.tensors[0].coordinates[1] = Expr::symbol("c2");
  EXPECT_EQ(refusal(stray), "op 'neg': a coordinate of 'x' names 'c2', the axes are c0, c1");
}

TEST(DivisionProblem, MalformedAxesAreRefused) {
  DivisionProblem twice = pointwise({4, 64});
  twice.axes[1].name = "c0";
  EXPECT_EQ(refusal(twice), "op 'neg': two axes are named 'c0'");
  DivisionProblem empty = pointwise({4, 64});
  empty.axes[0].extent = 0;
  EXPECT_EQ(refusal(empty), "op 'neg': axis 'c0' has extent 0 and granularity 1; both must be at least 1");
}

TEST(DivisionProblem, MalformedTensorsAreRefused) {
  DivisionProblem empty = pointwise({4, 64});
  empty.tensors[0].device_size[1] = 0;
  EXPECT_EQ(
      refusal(empty),
      "op 'neg': tensor 'x' has device size [1, 0, 64] and elements of 2 bytes; all must be at least 1");
  DivisionProblem problem = pointwise({4, 64});
  problem.tensors[0].coordinates.pop_back();
  EXPECT_EQ(refusal(problem), "op 'neg': tensor 'x' has 2 coordinates for 3 device dimensions");
  problem.tensors.clear();
  EXPECT_EQ(refusal(problem), "op 'neg': it has no output tensor");
}

TEST(DivisionProblem, SplitsPrintAndMultiply) {
  const Splits splits = {{"c0", 4}, {"c1", 3}};
  EXPECT_EQ(to_string(splits), "{c0: 4, c1: 3}");
  EXPECT_EQ(cores_used(splits), 12);
  EXPECT_EQ(split_of(splits, "c2"), 1);
}

}  // namespace
}  // namespace spyre
