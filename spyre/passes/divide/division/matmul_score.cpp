#include "spyre/passes/divide/division/matmul_score.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "spyre/base/error.h"

namespace spyre {
namespace {

constexpr double kMacsPerUsPerCore = 1.536e6;  // 98.304 TFLOP/s over 32 cores
constexpr double kHbmBytesPerUs = 204800;      // 204.8 GB/s

double real(int64_t n) {
  return static_cast<double>(n);
}

double log2_above(double ratio) {
  return std::max(0.0, std::log2(ratio));
}

/// How much longer the array takes when a core has few rows: full from 40 rows on, floored at 8.
double fill_penalty(int64_t rows) {
  return std::pow(40.0 / real(std::clamp<int64_t>(rows, 8, 40)), 0.25);
}

double compute_us(const MatmulExtents& s, const MatmulFactors& f) {
  const double macs = real(s.batch) * real(s.m) * real(s.n) * real(s.k) / real(f.cores());
  const double us = fill_penalty(s.m / f.m) * macs / kMacsPerUsPerCore;
  return f.k > 1 ? 2 * us : us;  // a core that hands on partial sums works with one corelet
}

double hbm_us(const MatmulExtents& s, const MatmulFactors& f) {
  const double left = real(s.batch * s.m * s.k * s.left_bytes);
  const double weight = real((s.shared_weight ? 1 : s.batch) * s.k * s.n * s.weight_bytes);
  const double output = real(s.batch * s.m * s.n * s.output_bytes);
  if (s.is_decode()) {
    return (left + output) / kHbmBytesPerUs + weight / (1000 * decode_weight_bandwidth(f.cores(), f.m, f.k));
  }
  const double fan = real(s.shared_weight ? std::max(f.m, f.n) : f.n);
  return (left + weight + output) / kHbmBytesPerUs * std::max(1.0, std::pow(fan / 8, 0.75));
}

double partial_sums_us(const MatmulExtents& s, const MatmulFactors& f) {
  const double per_element = s.shared_weight ? 1e-3 : 1e-4;
  return real(f.k - 1) * real(s.batch * s.m * s.n) / real(f.b * f.m * f.n) * per_element;
}

void add_preferences(const MatmulExtents& s, const MatmulFactors& f, int64_t max_cores, MatmulScore& score) {
  const int64_t rows = s.m / f.m;
  const int64_t columns = s.n / f.n;
  const double lanes = std::max(4.0, std::min(real(max_cores) / 2, real(std::max<int64_t>(1, s.m / 32))));
  const double deep = log2_above(real(s.k) / real(s.n));
  score.idle_lanes = 10 * log2_above(lanes / real(f.m));
  if (!s.is_decode()) score.short_tile = 30 * log2_above(16 / real(std::max<int64_t>(1, rows)));
  score.wide_tile = 25 * log2_above(real(columns) / 512);
  score.idle_cores = 150 * log2_above(real(max_cores) / real(f.cores()));
  if (s.shared_weight) {
    score.down_projection = 10 * deep * std::log2(real(f.n));
    if (rows >= 16) score.narrow_output = 5 * log2_above(4096 / real(s.n)) * log2_above(real(columns) / 128);
  } else {
    score.batch_split = 10 * std::log2(real(f.b));
    if (rows >= 16) score.value_shape = 20 * deep * std::log2(real(f.n));
  }
}

}  // namespace

double decode_weight_bandwidth(int64_t cores, int64_t m, int64_t k) {
  constexpr double kOtherwise = 140;
  constexpr std::array<double, 6> kPerSlice = {5.4, 18.4, 33.0, 42.9, 40.1, 41.6};  // m = 1, 2, 4, 8, 16, 32
  constexpr double kCeiling[4][4] = {{142, 142, 140, 140},  // rows m = 1, 2, 4, 8; columns k = 1, 2, 4, 8
                                     {144, 146, 143, 136},
                                     {152, 147, 140, 128},
                                     {135, 120, 103, kOtherwise}};
  const auto power = [](int64_t n) {
    return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(n)) - 1);
  };
  const size_t row = std::min<size_t>(power(m), kPerSlice.size() - 1);
  const size_t column = std::min<size_t>(power(k), 3);
  const double ceiling = row < 4 ? kCeiling[row][column] : kOtherwise;
  return std::min(ceiling, real(cores) / real(m) * kPerSlice[row]);
}

MatmulScore score_matmul(const MatmulExtents& shape, const MatmulFactors& factors, int64_t max_cores) {
  SPYRE_CHECK(factors.cores() <= max_cores, "a matmul split takes more cores than there are");
  MatmulScore score{.compute = compute_us(shape, factors),
                    .hbm = hbm_us(shape, factors),
                    .partial_sums = partial_sums_us(shape, factors)};
  add_preferences(shape, factors, max_cores, score);
  return score;
}

}  // namespace spyre
