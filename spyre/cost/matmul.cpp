#include "spyre/cost/matmul.h"

#include <algorithm>
#include <cmath>

#include "spyre/cost/ring.h"

namespace spyre {
namespace {

/// Below 8 rows a pass of the arrays has less to do for each weight.
double few_rows(double rows_per_core, double exponent) {
  return std::pow(std::min(1.0, rows_per_core / 8), exponent);
}

}  // namespace

Nanos MatmulTime::total(const Rates& rates) const {
  return compute + memory - std::min(compute, memory) * rates.overlap + split_penalty;
}

double matmul_rate(const MatmulShape& shape, int cores, const Rates& rates, bool default_order) {
  if (shape.batch == 1) return rates.mac_sustained;
  if (shape.shared_weight) return shape.batch <= 4 ? rates.mac_projection_few : rates.mac_projection_many;
  return default_order && shape.batch >= 4 && cores >= 8 ? rates.mac_batched : rates.mac_sustained;
}

double array_fill(double rows_per_core) {
  return std::min(1.0, std::pow(rows_per_core / 64, 0.35));
}

double one_corelet(const MatmulSplit& split) {
  return split.k > 1 ? 2 : 1;
}

double operand_reread(const MatmulShape& shape, const MatmulSplit& split) {
  const double area = double(shape.m) / split.m * double(shape.n) / split.n;
  return std::min(1.5, 0.45 * std::log2(std::max(1.0, area / 65536)));
}

MatmulTime matmul_time(const MatmulShape& shape, const MatmulSplit& split, const Rates& rates,
                       bool default_order) {
  const double rows = double(shape.m) / split.m, cols = double(shape.n) / split.n;
  const double area = rows * cols;
  const double reread = operand_reread(shape, split);
  const Traffic traffic = {shape.left() + shape.right(), shape.out()};
  const auto [longer, shorter] =
      shape.m >= shape.n ? std::pair(split.m, split.n) : std::pair(split.n, split.m);
  const double pieces =
      2.62 * std::max(0.0, std::log2(longer / 8.0)) + 2.88 * std::max(0.0, std::log2(shorter / 16.0));
  return {
      .compute = {shape.macs() / split.cores() /
                  (matmul_rate(shape, split.cores(), rates, default_order) * array_fill(rows))},
      .memory =
          streaming_time(traffic, rates) + Nanos{double(traffic.read.count()) * reread / rates.hbm_one_way},
      .split_penalty = {std::max(0.0, area - 131072) * pieces},
  };
}

double shared_slice_rate(double rows_per_core, const MatmulSplit& split, const Rates& rates) {
  return rates.slice_shared * few_rows(rows_per_core, rates.slice_few_rows) *
         (split.k > 1 ? rates.slice_one_corelet : 1);
}

bool streams_weight(const MatmulShape& shape) {
  return shape.shared_weight && shape.batch == 1 && shape.m <= 32;
}

double weight_rate(double rows_per_core, const MatmulSplit& split, const Rates& rates) {
  return (split.n > 1 ? rates.weight_columns_cut : rates.weight_columns_whole) *
         few_rows(rows_per_core, rates.weight_few_rows);
}

Nanos decode_matmul_time(const MatmulShape& shape, const MatmulSplit& split, const Rates& rates) {
  constexpr int64_t kPartialBytes = 4;
  const int slices = split.cores() / split.m;
  const double rows = double(shape.m) / split.m;
  const double slice = split.m > 1 ? shared_slice_rate(rows, split, rates) : core_rate(split.cores(), rates);
  const double rate = std::min(weight_rate(rows, split, rates), slices * slice);
  const Nanos memory = {double((shape.left() + shape.right() + shape.out()).count()) / rate};
  const Nanos compute = matmul_time(shape, split, rates).compute * one_corelet(split);
  const Bytes partial(shape.m * shape.n / (split.m * split.n) * kPartialBytes);
  return std::max(compute, memory) + ring_chain_time(partial, split.k, 1, rates);
}

}  // namespace spyre
