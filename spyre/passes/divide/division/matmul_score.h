#pragma once

#include <cstdint>

/// What one way to split a matmul costs, in microseconds, from sizes alone. The constants are upstream's fits
/// to measurements on the card. Two kinds of terms, kept apart: an execution estimate, which is a time, and
/// preferences, which only rank the splits of one matmul and must never be added into the time of a program.
namespace spyre {

/// batch x [m, k] times batch x [k, n], in elements, stick axes padded to whole sticks.
struct MatmulExtents {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool shared_weight = true;                                   ///< one [k, n] serves every batch
  int64_t left_bytes = 2, weight_bytes = 2, output_bytes = 2;  ///< of one element

  /// Few rows and one fp16 weight: the time is that of streaming the weight, which has its own fit.
  bool is_decode() const { return shared_weight && weight_bytes == 2 && batch == 1 && m >= 2 && m <= 32; }
};

struct MatmulFactors {
  int64_t b = 1, m = 1, n = 1, k = 1;

  int64_t cores() const { return b * m * n * k; }
  friend bool operator==(const MatmulFactors&, const MatmulFactors&) = default;
};

struct MatmulScore {
  // Execution estimate.
  double compute =
      0;           ///< multiply-accumulates at peak, short tiles filling the array less; k split: one corelet
  double hbm = 0;  ///< operands and result at peak bandwidth, slower when many cores share a slice
  double partial_sums = 0;  ///< combining the results of a k split

  // Preferences.
  double idle_lanes = 0;       ///< m is cut less than the array likes
  double short_tile = 0;       ///< under 16 rows a core
  double wide_tile = 0;        ///< over 512 columns a core
  double value_shape = 0;      ///< n cut although k is longer than n, one weight per batch
  double narrow_output = 0;    ///< under 4096 columns, yet wide tiles
  double down_projection = 0;  ///< n cut although k is longer than n, shared weight
  double idle_cores = 0;
  double batch_split = 0;

  double execution() const { return compute + hbm + partial_sums; }
  double total() const {
    return execution() + idle_lanes + short_tile + wide_tile + value_shape + narrow_output + down_projection +
           idle_cores + batch_split;
  }
};

/// `max_cores` is the number of cores to divide over; `factors` must not take more.
MatmulScore score_matmul(const MatmulExtents& shape, const MatmulFactors& factors, int64_t max_cores);

/// GB/s at which a decode matmul streams its weight when `cores` cores split m and k this way. The `m` cores
/// that share a slice of the weight are served together; the `cores / m` slices stream side by side, each at
/// a rate that grows with its readers, up to a common ceiling.
double decode_weight_bandwidth(int64_t cores, int64_t m, int64_t k);

}  // namespace spyre
