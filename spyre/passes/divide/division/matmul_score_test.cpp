#include "spyre/passes/divide/division/matmul_score.h"

#include <gtest/gtest.h>

namespace spyre {
namespace {

constexpr double kTolerance = 0.005;  // the published figures have two decimals

TEST(MatmulScore, PublishedPartsOfASquareProjection) {
  const MatmulScore s = score_matmul({.m = 512, .n = 4096, .k = 4096}, {.m = 4, .n = 8}, 32);
  EXPECT_NEAR(s.compute, 174.76, kTolerance);
  EXPECT_NEAR(s.hbm, 204.80, kTolerance);
  EXPECT_NEAR(s.idle_lanes, 20, kTolerance);
  EXPECT_NEAR(s.total(), 399.56, kTolerance);
}

TEST(MatmulScore, PublishedPartsOfANarrowDownProjection) {
  const MatmulScore s = score_matmul({.m = 512, .n = 1024, .k = 4096}, {.m = 8, .n = 4}, 32);
  EXPECT_NEAR(s.compute, 43.69, kTolerance);
  EXPECT_NEAR(s.hbm, 66.56, kTolerance);
  EXPECT_NEAR(s.idle_lanes, 10, kTolerance);
  EXPECT_NEAR(s.narrow_output, 10, kTolerance);
  EXPECT_NEAR(s.down_projection, 40, kTolerance);
  EXPECT_NEAR(s.total(), 170.25, kTolerance);
}

TEST(MatmulScore, PublishedPartsOfAWideProjection) {
  const MatmulScore s = score_matmul({.m = 512, .n = 12800, .k = 4096}, {.m = 4, .n = 8}, 32);
  EXPECT_NEAR(s.compute, 546.13, kTolerance);
  EXPECT_NEAR(s.hbm, 596.48, kTolerance);
  EXPECT_NEAR(s.idle_lanes, 20, kTolerance);
  EXPECT_NEAR(s.wide_tile, 41.10, kTolerance);
  EXPECT_NEAR(s.total(), 1203.71, kTolerance);
}

TEST(MatmulScore, PublishedPartsOfADeepProjection) {
  const MatmulScore s = score_matmul({.m = 512, .n = 4096, .k = 12800}, {.m = 8, .n = 4}, 32);
  EXPECT_NEAR(s.compute, 546.13, kTolerance);
  EXPECT_NEAR(s.hbm, 596.48, kTolerance);
  EXPECT_NEAR(s.wide_tile, 25, kTolerance);
  EXPECT_NEAR(s.down_projection, 32.88, kTolerance);
  EXPECT_NEAR(s.total(), 1210.49, kTolerance);
}

TEST(MatmulScore, PublishedPartsOfBatchedMatmuls) {
  const MatmulExtents scores{.batch = 32, .m = 512, .n = 512, .k = 128, .shared_weight = false};
  const MatmulScore qk = score_matmul(scores, {.m = 16, .n = 2}, 32);
  EXPECT_NEAR(qk.compute, 23.10, kTolerance);
  EXPECT_NEAR(qk.hbm, 122.88, kTolerance);
  EXPECT_NEAR(qk.total(), 145.98, kTolerance);
  const MatmulExtents values{.batch = 32, .m = 512, .n = 128, .k = 512, .shared_weight = false};
  const MatmulScore av = score_matmul(values, {.m = 32}, 32);
  EXPECT_NEAR(av.compute, 27.47, kTolerance);
  EXPECT_NEAR(av.hbm, 122.88, kTolerance);
  EXPECT_NEAR(av.total(), 150.35, kTolerance);
  // 20 * log2(512/128) * log2(2) for cutting n, 10 * log2(4) for cutting the batch.
  EXPECT_NEAR(score_matmul(values, {.m = 16, .n = 2}, 32).value_shape, 40, kTolerance);
  EXPECT_NEAR(score_matmul(values, {.b = 4, .m = 8}, 32).batch_split, 20, kTolerance);
}

TEST(MatmulScore, PublishedPartsOfASmallMatmulThatSplitsK) {
  const MatmulScore s = score_matmul({.m = 128, .n = 128, .k = 128}, {.m = 8, .n = 2, .k = 2}, 32);
  EXPECT_NEAR(s.compute, 0.11, kTolerance);
  EXPECT_NEAR(s.hbm, 0.48, kTolerance);
  EXPECT_NEAR(s.partial_sums, 1.02, kTolerance);
  EXPECT_NEAR(s.total(), 1.61, kTolerance);
}

TEST(MatmulScore, IdleCoresAndShortTilesArePenalised) {
  const MatmulExtents shape{.m = 64, .n = 512, .k = 512};
  EXPECT_NEAR(score_matmul(shape, {.m = 4, .n = 4}, 32).idle_cores, 150, kTolerance);
  EXPECT_NEAR(score_matmul(shape, {.m = 32}, 32).short_tile, 90, kTolerance);  // 2 rows: 30 * log2(16/2)
}

TEST(MatmulScore, DecodeStreamsItsWeightAtTheFittedRate) {
  // 16 unshared slices at 5.4 GB/s; 32 cores on 8 slices of four readers run into the ceiling.
  EXPECT_NEAR(decode_weight_bandwidth(16, 1, 1), 86.4, 1e-9);
  EXPECT_NEAR(decode_weight_bandwidth(32, 1, 1), 142, 1e-9);
  EXPECT_NEAR(decode_weight_bandwidth(32, 4, 1), 152, 1e-9);
  EXPECT_NEAR(decode_weight_bandwidth(4, 4, 1), 33.0, 1e-9);
  // Rounded down to powers of two, k capped at 8, everything not in the table at 140.
  EXPECT_NEAR(decode_weight_bandwidth(30, 3, 1), 144, 1e-9);
  EXPECT_NEAR(decode_weight_bandwidth(32, 1, 16), 140, 1e-9);
  EXPECT_NEAR(decode_weight_bandwidth(32 * 8, 8, 8), 140, 1e-9);
  EXPECT_NEAR(decode_weight_bandwidth(32, 32, 1), 41.6, 1e-9);
}

TEST(MatmulScore, DecodeDropsTheShortTilePreference) {
  const MatmulExtents decode{.m = 8, .n = 4096, .k = 4096};
  const MatmulScore s = score_matmul(decode, {.m = 4, .n = 8}, 32);
  EXPECT_EQ(s.short_tile, 0);
  // (8*4096 + 8*4096) * 2 bytes at 204.8 GB/s and 4096*4096*2 at 152.
  EXPECT_NEAR(s.hbm, 131072 / 204800.0 + 33554432 / 152000.0, 1e-9);
  const MatmulExtents prefill{.m = 33, .n = 4096, .k = 4096};
  EXPECT_GT(score_matmul(prefill, {.m = 11}, 32).short_tile, 0);
}

}  // namespace
}  // namespace spyre
