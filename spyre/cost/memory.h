#pragma once

#include "spyre/base/units.h"
#include "spyre/cost/rates.h"

namespace spyre {

/// Off-chip traffic of one bundle (docs/reference/timing.md#traffic). A distinct input counts once however
/// many operations read it, a broadcast operand at its own size, a spilled intermediate once as written and
/// once per reader; what stays in LX counts nothing.
struct Traffic {
  Bytes read, written;

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Plain streaming:  (R + W) / 150  +  turnaround * min(R, W).
Nanos streaming_time(Traffic traffic, const Rates& rates);

/// Traffic at a flat rate that already contains the turnaround, as the access patterns below give it.
Nanos flat_time(Traffic traffic, double bytes_per_ns);

/// The rate of one row reduction that runs alone: more rows are slower, fewer cores too.
double lone_reduction_rate(int64_t rows, int cores, const Rates& rates);

/// Part of the off-chip bandwidth that so many cores reach: the table of rates.h, interpolated over log2.
double core_share(int cores, const Rates& rates);

/// What one of so many cores gets of slices that it has to itself.
double core_rate(int cores, const Rates& rates);

/// Fitted rates of access patterns over a [rows, cols] fp16 tensor, bytes per ns (docs/reference/timing.md#access-patterns).
double concat_partition_rate(int64_t rows, int64_t cols);
double concat_row_rate(int64_t cols);
/// [R, M, C] to [M, R, C]; short middle dimensions are slower still.
double swap_outer_rate(int64_t rows, int64_t middle, int64_t cols);
/// One operand is a row [1, cols]; or a column or scalar.
double row_broadcast_rate(int64_t rows, int64_t cols);
double column_broadcast_rate(int64_t rows, int64_t cols);

/// How well coarse tiles fill the machine: divides the memory time (docs/reference/timing.md#tiles). `rows_per_core` counts one tile.
double tile_efficiency(double rows_per_core, int64_t cols);
double matmul_tile_efficiency(double rows_per_core);

/// Slow-down when the working set of a tile, two tensors of `rows_per_core` by `cols`, passes the fitted
/// knee. Divides the memory time too: 1 below the knee, less above.
enum class TiledKind { kFused, kMatmul };
double spill_derate(double rows_per_core, int64_t cols, int element_bytes, TiledKind kind);

}  // namespace spyre
