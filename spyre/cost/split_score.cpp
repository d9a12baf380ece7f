#include "spyre/cost/split_score.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace spyre {
namespace {

/// max(0, log2(x)): how many doublings too much.
double doublings(double x) {
  return std::max(0.0, std::log2(x));
}

/// Rows per core fill the array in time: a fourth-root slope between 8 and 40 rows.
double peak_fill(double rows) {
  return std::pow(40 / std::clamp(rows, 8.0, 40.0), 0.25);
}

double compute_us(const MatmulShape& shape, const MatmulSplit& split, double rows, const Rates& rates) {
  return one_corelet(split) * peak_fill(rows) * shape.macs() / split.cores() / rates.mac_peak / 1000;
}

double hbm_us(const MatmulShape& shape, const MatmulSplit& split, const Rates& rates) {
  const double bytes_per_us = rates.hbm_peak * 1000;
  if (is_decode(shape)) {
    const double weight = double(shape.right().count()) / (1000 * weight_delivery_rate(split));
    return double((shape.left() + shape.out()).count()) / bytes_per_us + weight;
  }
  const double bytes = double((shape.left() + shape.right() + shape.out()).count());
  const double fan = shape.shared_weight ? std::max(split.m, split.n) : split.n;
  return bytes / bytes_per_us * std::max(1.0, std::pow(fan / 8, 0.75));
}

size_t table_row(int value) {
  return size_t(std::bit_width(unsigned(value)) - 1);
}

}  // namespace

double SplitScore::total() const {
  return execution() + idle_lanes + short_tile + wide_tile + value_shape + narrow_output + down_projection +
         idle_cores + batch_split;
}

bool is_decode(const MatmulShape& shape) {
  return shape.shared_weight && shape.batch == 1 && shape.in_bytes == 2 && shape.m >= 2 && shape.m <= 32;
}

double weight_delivery_rate(const MatmulSplit& split) {
  constexpr double kSlice[] = {5.4, 18.4, 33.0, 42.9, 40.1, 41.6};  // by m = 1, 2, 4 .. 32
  constexpr double kCap[4][4] = {
      {142, 142, 140, 140}, {144, 146, 143, 136}, {152, 147, 140, 128}, {135, 120, 103, 140}};
  const size_t m = std::min<size_t>(table_row(split.m), 5), k = std::min<size_t>(table_row(split.k), 3);
  const double cap = m < 4 ? kCap[m][k] : 140;
  return std::min(cap, double(split.cores()) / split.m * kSlice[m]);
}

SplitScore score_split(const MatmulShape& shape, const MatmulSplit& split, int max_cores,
                       const Rates& rates) {
  const double rows = double(shape.m / split.m), cols = double(shape.n / split.n);
  const double n = double(shape.n), k = double(shape.k);
  const double most_lanes = std::max(4.0, std::min(max_cores / 2.0, std::max(1.0, double(shape.m / 32))));
  const double partial = double(shape.batch * shape.m) * n / (double(split.b) * split.m * split.n);
  SplitScore score;
  score.compute = compute_us(shape, split, rows, rates);
  score.hbm = hbm_us(shape, split, rates);
  score.partial_sums = (split.k - 1) * partial * (shape.shared_weight ? 1e-3 : 1e-4);
  score.idle_lanes = 10 * doublings(most_lanes / split.m);
  score.short_tile = is_decode(shape) ? 0 : 30 * doublings(16 / std::max(1.0, rows));
  score.wide_tile = 25 * doublings(cols / 512);
  score.idle_cores = 150 * doublings(double(max_cores) / split.cores());
  if (shape.shared_weight) {
    score.narrow_output = rows >= 16 ? 5 * doublings(4096 / n) * doublings(cols / 128) : 0;
    score.down_projection = 10 * doublings(k / n) * std::log2(split.n);
  } else {
    score.value_shape = rows >= 16 ? 20 * doublings(k / n) * std::log2(split.n) : 0;
    score.batch_split = 10 * std::log2(split.b);
  }
  return score;
}

}  // namespace spyre
