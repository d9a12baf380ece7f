#include "spyre/ops/legality.h"

#include <gtest/gtest.h>

namespace spyre {
namespace {

using enum Presence;

TEST(Legality, AProductHasOneOfEachAndTwoOfEach) {
  EXPECT_FALSE(check_matmul_loops({.contracted = 1, .generated = 1, .preserved = 2, .shared = 2}));
  EXPECT_EQ(check_matmul_loops({.contracted = 2, .generated = 1})->found, "2 contracted dims");
  EXPECT_EQ(check_matmul_loops({.contracted = 1, .generated = 2})->found, "2 generated dims");
  EXPECT_EQ(check_matmul_loops({.contracted = 1, .generated = 1, .preserved = 3})->found, "3 preserved dims");
  EXPECT_EQ(check_matmul_loops({.contracted = 1, .generated = 1, .shared = 3})->allowed, "at most two");
}

// x [b.., m, k] times w [b.., k, n]: dims are the batches, then m, n, k.
OpShape product(const std::vector<int64_t>& batches) {
  OpShape op{.info = find_op("batchmatmul"), .inputs = {0, 1}, .output = 2};
  for (const int64_t extent : batches) op.dims.push_back({.label = "b", .extent = extent});
  const int m = static_cast<int>(batches.size()), n = m + 1, k = m + 2;
  op.dims.insert(op.dims.end(),
                 {{.label = "m", .extent = 4}, {.label = "n", .extent = 64}, {.label = "k", .extent = 64}});
  const auto tensor = [&](int absent, int stick) {
    OpShape::Tensor t{.presence = std::vector(op.dims.size(), kPresent),
                      .per_stick = std::vector<int64_t>(op.dims.size(), 1),
                      .stick = {stick}};
    t.presence[static_cast<size_t>(absent)] = kUnlisted;
    t.per_stick[static_cast<size_t>(stick)] = 64;
    return t;
  };
  op.tensors = {tensor(n, k), tensor(m, n), tensor(k, n)};
  return op;
}

TEST(Legality, PositionsOfOneStepAreNoLoops) {
  EXPECT_FALSE(check_legality(product({2, 3})));
  EXPECT_FALSE(check_legality(product({2, 1, 3, 1})));
  EXPECT_EQ(check_legality(product({2, 3, 4}))->found, "3 dims shared by all three");
}

TEST(Legality, TheLeftOperandMayBeRepeatedAlongABatch) {
  OpShape op = product({2});
  op.tensors[0].presence[0] = kAbsent;
  EXPECT_FALSE(check_legality(op));
  op.tensors[0].presence[0] = kUnlisted;
  EXPECT_EQ(check_legality(op)->found, "2 generated dims");
}

TEST(Legality, SlicesAreWholeSticks) {
  OpShape op = product({});
  op.dims[1] = {.label = "n", .extent = 128, .splits = 4};
  EXPECT_EQ(check_legality(op)->found, "32 elements per core");
  EXPECT_EQ(check_legality(op)->field, "dataStageParam_.0.ss_.n_");
  EXPECT_EQ(check_legality(op)->tensor, 1);
}

}  // namespace
}  // namespace spyre
