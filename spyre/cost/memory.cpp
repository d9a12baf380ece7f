#include "spyre/cost/memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace spyre {
namespace {

double sticks(int64_t cols) {
  return double(cols) / 64;
}

/// Fitted piecewise: long tensors, short narrow ones, short wide ones.
struct BroadcastFit {
  double long_base, long_cols, long_rows, long_low, long_high;
  double narrow_base, narrow_rows, narrow_rows2, narrow_cols, narrow_low, narrow_high;
  double wide_base, wide_below, wide_above, wide_low, wide_high;
};

constexpr BroadcastFit kRow = {183.5, -2.8, -2.6, 100, 135, -350, 105, -5.5,
                               -2,    45,   140,  92,  32,  10,   40,  128};
constexpr BroadcastFit kColumn = {162, -1.8, -2.2, 95, 130, -270, 70, -3.5, 3, 45, 120, 98, 15, 8, 40, 120};

double broadcast_rate(const BroadcastFit& fit, int64_t rows, int64_t cols) {
  const double lr = std::log2(double(rows)), lc = std::log2(double(cols));
  if (rows >= 1024) {
    return std::clamp(fit.long_base + fit.long_cols * lc + fit.long_rows * lr, fit.long_low, fit.long_high);
  }
  if (cols <= 4096) {
    const double rate =
        fit.narrow_base + fit.narrow_rows * lr + fit.narrow_rows2 * lr * lr + fit.narrow_cols * lc;
    return std::clamp(rate, fit.narrow_low, fit.narrow_high);
  }
  const double balance = lc - 6;
  const double rate = fit.wide_base + fit.wide_below * std::max(0.0, balance - lr) +
                      fit.wide_above * std::max(0.0, lr - balance);
  return std::clamp(rate, fit.wide_low, fit.wide_high);
}

}  // namespace

Nanos streaming_time(Traffic traffic, const Rates& rates) {
  const double read = double(traffic.read.count()), written = double(traffic.written.count());
  return {(read + written) / rates.hbm_one_way + rates.turnaround * std::min(read, written)};
}

Nanos flat_time(Traffic traffic, double bytes_per_ns) {
  return {double((traffic.read + traffic.written).count()) / bytes_per_ns};
}

double core_share(int cores, const Rates& rates) {
  const double place = std::clamp(std::log2(double(cores)), 0.0, double(rates.reduction_share.size() - 1));
  const size_t below = std::min(size_t(place), rates.reduction_share.size() - 2);
  const double part = place - double(below);
  return rates.reduction_share[below] * (1 - part) + rates.reduction_share[below + 1] * part;
}

double core_rate(int cores, const Rates& rates) {
  return std::max(rates.slice_alone, rates.hbm_one_way * core_share(cores, rates) / cores);
}

double lone_reduction_rate(int64_t rows, int cores, const Rates& rates) {
  const double fitted_memory = fitted_rates().hbm_one_way;
  const double fitted = std::min(fitted_memory, 114 + 61 * std::exp(-double(rows) / 3700));
  return fitted * rates.hbm_one_way / fitted_memory * core_share(cores, rates);
}

double concat_partition_rate(int64_t rows, int64_t cols) {
  return std::clamp(144 - 9.6 * std::log2(sticks(cols)) - 2.4 * std::log2(double(rows)), 44.0, 150.0);
}

double concat_row_rate(int64_t cols) {
  return std::clamp(110 - 0.8 * std::log2(sticks(cols)), 90.0, 150.0);
}

double swap_outer_rate(int64_t rows, int64_t middle, int64_t cols) {
  const double rate =
      std::clamp(140 - 6.8 * std::log2(sticks(cols)) - 1.2 * std::log2(double(rows)), 83.0, 150.0);
  return middle >= 8 ? rate : std::max(40.0, rate - 13 * std::log2(8.0 / double(middle)));
}

double row_broadcast_rate(int64_t rows, int64_t cols) {
  return broadcast_rate(kRow, rows, cols);
}

double column_broadcast_rate(int64_t rows, int64_t cols) {
  return broadcast_rate(kColumn, rows, cols);
}

double tile_efficiency(double rows_per_core, int64_t cols) {
  constexpr double kKnee = 0.248;
  const double fill = std::min(1.08, std::sqrt(rows_per_core / 7.9) * std::pow(double(cols) / 2048, 0.38));
  return fill >= kKnee ? fill : kKnee * std::pow(fill / kKnee, 0.1);
}

double matmul_tile_efficiency(double rows_per_core) {
  if (rows_per_core < 2) return std::pow(2.0 / 13, 0.68) * std::pow(rows_per_core / 2, 0.1);
  return std::min(0.95, std::pow(rows_per_core / 13, 0.68));
}

double spill_derate(double rows_per_core, int64_t cols, int element_bytes, TiledKind kind) {
  const double knee = kind == TiledKind::kFused ? 512 * 1024 : 2 * 1024 * 1024;
  const double exponent = kind == TiledKind::kFused ? 0.06 : 0.15;
  const double working_set = 2 * rows_per_core * double(cols) * element_bytes;
  return working_set <= knee ? 1 : std::pow(knee / working_set, exponent);
}

}  // namespace spyre
