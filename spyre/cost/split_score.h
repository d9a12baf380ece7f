#pragma once

#include "spyre/cost/matmul.h"

namespace spyre {

/// Upstream's score of a matmul split (docs/reference/division.md#scores). Lower is better.
///
/// `compute`, `hbm` and `partial_sums` estimate time at peak rates; the other terms are preferences fitted to
/// make the ranking right. They are not latencies: never add them to a program's time.
struct SplitScore {
  double compute = 0, hbm = 0, partial_sums = 0;  // microseconds
  double idle_lanes = 0;                          ///< M cut in fewer pieces than it could be
  double short_tile = 0;                          ///< few rows per core
  double wide_tile = 0;                           ///< many columns per core
  double value_shape = 0;                         ///< batched, K much longer than N, N cut
  double narrow_output = 0;                       ///< shared weight, short N, wide pieces
  double down_projection = 0;                     ///< shared weight, K much longer than N, N cut
  double idle_cores = 0;
  double batch_split = 0;

  double execution() const { return compute + hbm + partial_sums; }
  double total() const;
};

SplitScore score_split(const MatmulShape& shape, const MatmulSplit& split, int max_cores, const Rates& rates);

/// Whether the weight streams as in decoding: one shared fp16 weight and 2 to 32 rows.
bool is_decode(const MatmulShape& shape);

/// Bandwidth at which the weight arrives, bytes per ns (docs/reference/division.md#weight-delivery). The m cores that
/// split M share a slice, the cores / m distinct slices stream side by side, and the bus caps the sum:
///
///     cores 32, m 1, k 1:   32 slices at 5.4 each  -> 142 (capped)
///     cores 32, m 8, k 1:    4 slices at 42.9      -> 135 (capped)
///     cores 16, m 1, k 1:   16 slices at 5.4       ->  86.4
double weight_delivery_rate(const MatmulSplit& split);

}  // namespace spyre
