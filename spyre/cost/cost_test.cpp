#include <gtest/gtest.h>

#include "spyre/cost/bundle.h"
#include "spyre/cost/matmul.h"
#include "spyre/cost/memory.h"
#include "spyre/cost/ring.h"
#include "spyre/cost/split_score.h"

namespace spyre {
namespace {

const Rates& kCard = fitted_rates();
const Rates& kToy = toy_rates();
constexpr Bytes kTensor(4096 * 2048 * 2);  // [4096, 2048] fp16

TEST(ToyTimes, MemoryHidesBehindLongerCompute) {
  // memory  |<-- 30 -->|
  // compute |<------ 50 ------>|                 relayout |<- 5 ->|
  BundleWork work = {
      .compute = {50}, .memory = streaming_time({Bytes(20), Bytes(10)}, kToy), .relayout = {5}};
  EXPECT_EQ(kernel_time(work, kToy).ns, 55);
  work.compute = {12};
  EXPECT_EQ(kernel_time(work, kToy).ns, 30 + 5);
}

TEST(ToyTimes, RereadsAndPoorTilesLengthenMemoryOnly) {
  // 30 bytes at half efficiency take 60, ten bytes fetched again 10 more.
  const BundleWork work = {.compute = {1},
                           .memory = streaming_time({Bytes(20), Bytes(10)}, kToy),
                           .efficiency = 0.5,
                           .reread = Bytes(10)};
  EXPECT_EQ(kernel_time(work, kToy).ns, 70);
}

TEST(ToyTimes, AMatmulIsMacsOverCores) {
  // 128 x 4 x 2 = 1024 multiply-accumulates over two cores of 64 rows: 512. Bytes: (8 + 512 + 1024)... at 1
  // each.
  const MatmulTime time = matmul_time({.m = 128, .n = 4, .k = 2}, {.m = 2}, kToy);
  EXPECT_EQ(time.compute.ns, 512);
  EXPECT_EQ(time.memory.ns, (128 * 2 + 2 * 4 + 128 * 4) * 2);
  EXPECT_EQ(time.split_penalty.ns, 0);
}

TEST(ToyTimes, PartialSumsTravelTheRingStepByStep) {
  // Four cores, 100 bytes each: three steps of 100, twice that when each step crosses two links.
  EXPECT_EQ(ring_chain_time(Bytes(100), 4, 1, kToy).ns, 300);
  EXPECT_EQ(ring_chain_time(Bytes(100), 4, 2, kToy).ns, 600);
  EXPECT_EQ(ring_chain_time(Bytes(100), 1, 1, kToy).ns, 0);
}

TEST(ToyTimes, CopiesOfAnOperandShareTheCores) {
  EXPECT_EQ(replicated_load_time(Bytes(80), 1, 4, kToy).ns, 80);
  EXPECT_EQ(replicated_load_time(Bytes(80), 2, 4, kToy).ns, 40);
}

// docs/reference/timing.md#check-values, in its own units.
TEST(CheckValues, Streaming) {
  EXPECT_NEAR(streaming_time({kTensor, kTensor}, kCard).us(), 320.0, 0.05) << "neg";
  EXPECT_NEAR(streaming_time({kTensor * 2, kTensor}, kCard).us(), 431.8, 0.1) << "add";
  EXPECT_NEAR(double(2 * kTensor.count()) / streaming_time({kTensor, kTensor}, kCard).ns, 104.9, 0.05);
}

TEST(CheckValues, LoneRowReductionLosesBandwidthWithCores) {
  const auto us = [](int cores) {
    return flat_time({kTensor, Bytes(0)}, lone_reduction_rate(4096, cores, kCard)).us();
  };
  EXPECT_NEAR(us(32), 125.1, 0.05);
  EXPECT_NEAR(us(8), 231.6, 0.1);
  EXPECT_NEAR(us(1), 1136.8, 0.5);
  EXPECT_NEAR(core_share(24, kCard), 0.54 + 0.46 * 0.58496, 1e-4) << "between 16 and 32, on a log scale";
}

TEST(CheckValues, AccessPatterns) {
  const Bytes square(2048 * 2048 * 2);
  EXPECT_NEAR(flat_time({square, square}, kCard.stick_swap).us(), 144.6, 0.05);
  EXPECT_NEAR(row_broadcast_rate(4096, 2048), 121.5, 0.05);
  EXPECT_NEAR(row_broadcast_rate(128, 8192), 92.0, 0.05);
  EXPECT_NEAR(concat_partition_rate(2048, 2048), 69.6, 0.05);
  EXPECT_NEAR(swap_outer_rate(2048, 8, 2048), 92.8, 0.05);
  EXPECT_NEAR(swap_outer_rate(2048, 4, 2048), 79.8, 0.05) << "13 less per halving below 8";
  EXPECT_NEAR(concat_row_rate(2048), 106.0, 0.05);
  // Columns: 162 - 1.8 * 11 - 2.2 * 12 = 115.8.
  EXPECT_NEAR(column_broadcast_rate(4096, 2048), 115.8, 0.05);
}

TEST(CheckValues, TileEfficiency) {
  EXPECT_NEAR(tile_efficiency(4, 2048), 0.712, 5e-4);
  EXPECT_NEAR(tile_efficiency(2, 2048), 0.503, 5e-4);
  EXPECT_NEAR(tile_efficiency(4, 128), 0.248, 5e-4);
  EXPECT_NEAR(tile_efficiency(1, 128), 0.231, 5e-4);
  EXPECT_EQ(spill_derate(64, 2048, 2, TiledKind::kFused), 1) << "512 KiB is still below the knee";
  EXPECT_NEAR(spill_derate(128, 2048, 2, TiledKind::kFused), 0.9593, 1e-4) << "0.5 ^ 0.06";
}

TEST(CheckValues, Matmuls) {
  const MatmulTime cube = matmul_time({.m = 2048, .n = 2048, .k = 2048}, {.m = 8, .n = 4}, kCard);
  EXPECT_NEAR(cube.compute.us(), 235.5, 0.05);
  EXPECT_NEAR(cube.memory.us(), 266.3, 0.05);
  EXPECT_NEAR(cube.total(kCard).us(), 266.3, 0.05);
  const MatmulShape big = {.m = 4096, .n = 4096, .k = 4096};
  EXPECT_NEAR(matmul_time(big, {.m = 8, .n = 4}, kCard).total(kCard).us(), 1883.8, 0.1);
  EXPECT_NEAR(matmul_time(big, {.m = 32}, kCard).total(kCard).us(), 3944.2, 0.1);
  const MatmulTime flat = matmul_time({.m = 512, .n = 4096, .k = 4096}, {.m = 8, .n = 4}, kCard);
  EXPECT_NEAR(flat.compute.us(), 235.5, 0.05);
  EXPECT_NEAR(flat.total(kCard).us(), 303.7, 0.05);
}

TEST(CheckValues, RowTiledMatmulReadsItsWeightAgain) {
  // M 4096, K 2048, N 1024 in 8 row tiles on 32 row splits: 16 rows a core; the 4 MiB weight is read 7 times
  // more.
  const Bytes weight(2048 * 1024 * 2);
  const BundleWork work = {
      .compute = {4096.0 * 2048 * 1024 / 32 / kCard.mac_sustained},
      .memory = streaming_time({Bytes(4096 * 2048 * 2) + weight, Bytes(4096 * 1024 * 2)}, kCard),
      .efficiency = matmul_tile_efficiency(16),
      .spill = spill_derate(16, 1024, 2, TiledKind::kMatmul),
      .reread = weight * 7,
  };
  EXPECT_NEAR(kernel_time(work, kCard).us(), 423.1, 0.1);
}

TEST(CheckValues, Relayouts) {
  EXPECT_NEAR(relayout_time(mebibytes(2), 8, Bytes(256), 4, kCard).us(), 8.78, 0.005);
  EXPECT_NEAR(relayout_time(mebibytes(2), 8, Bytes(4096), 2, kCard).us(), 1.14, 0.005);
  EXPECT_NEAR(relayout_time(mebibytes(2), 8, Bytes(128), 8, kCard).us(), 25.6, 0.05);
}

// docs/reference/division.md#best-splits; every legal split is tried.
struct ScoreRow {
  MatmulShape shape;
  MatmulSplit best;
  double score;
};

class SplitScores : public testing::TestWithParam<ScoreRow> {};

TEST_P(SplitScores, TheBestSplitAndItsScoreAreAsRecorded) {
  const auto& [shape, expected, score] = GetParam();
  constexpr int kCores = 32;
  MatmulSplit best;
  double least = 1e300;
  const auto divides = [](int64_t size, int part) { return size % part == 0; };
  for (int b = 1; b <= kCores; ++b) {
    for (int m = 1; b * m <= kCores; ++m) {
      for (int n = 1; b * m * n <= kCores; ++n) {
        for (int k = 1; b * m * n * k <= kCores; ++k) {
          // N and K are cut between sticks of 64 elements.
          if (!divides(shape.batch, b) || !divides(shape.m, m) || !divides(shape.n / 64, n) ||
              !divides(shape.k / 64, k)) {
            continue;
          }
          const MatmulSplit split = {b, m, n, k};
          if (const double total = score_split(shape, split, kCores, kCard).total(); total < least) {
            least = total;
            best = split;
          }
        }
      }
    }
  }
  EXPECT_EQ(best, expected) << best.b << ' ' << best.m << ' ' << best.n << ' ' << best.k;
  EXPECT_NEAR(least, score, 0.005);
}

INSTANTIATE_TEST_SUITE_P(Reference, SplitScores,
                         testing::Values(ScoreRow{{1, 512, 4096, 4096}, {1, 4, 8, 1}, 399.56},
                                         ScoreRow{{1, 512, 1024, 4096}, {1, 8, 4, 1}, 170.25},
                                         ScoreRow{{1, 512, 12800, 4096}, {1, 4, 8, 1}, 1203.71},
                                         ScoreRow{{1, 512, 4096, 12800}, {1, 8, 4, 1}, 1210.49},
                                         ScoreRow{{32, 512, 512, 128, false}, {1, 16, 2, 1}, 145.98},
                                         ScoreRow{{32, 512, 128, 512, false}, {1, 32, 1, 1}, 150.35},
                                         ScoreRow{{1, 128, 128, 128}, {1, 8, 2, 2}, 1.61}));

}  // namespace
}  // namespace spyre
