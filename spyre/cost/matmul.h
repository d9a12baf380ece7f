#pragma once

#include <cstdint>

#include "spyre/base/units.h"
#include "spyre/cost/memory.h"
#include "spyre/cost/rates.h"

namespace spyre {

/// [B, M, K] times [B, K, N], or times [K, N] when all batches share one weight.
struct MatmulShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool shared_weight = true;
  int in_bytes = 2, out_bytes = 2;

  constexpr double macs() const { return double(batch) * double(m) * double(n) * double(k); }
  constexpr Bytes left() const { return Bytes(batch * m * k * in_bytes); }
  constexpr Bytes right() const { return Bytes((shared_weight ? 1 : batch) * k * n * in_bytes); }
  constexpr Bytes out() const { return Bytes(batch * m * n * out_bytes); }
};

/// Into how many pieces each dimension is cut; the product is the number of cores.
struct MatmulSplit {
  int b = 1, m = 1, n = 1, k = 1;

  constexpr int cores() const { return b * m * n * k; }
  friend bool operator==(const MatmulSplit&, const MatmulSplit&) = default;
};

/// The parts of an estimate, so that reports can show them and callers can overlap them.
struct MatmulTime {
  Nanos compute;
  Nanos memory;
  Nanos split_penalty;  ///< added last, hidden by nothing

  /// compute + memory - overlap * min(compute, memory) + penalty
  Nanos total(const Rates& rates) const;
};

/// Sustained rate by operand ranks: plain 2-D, batched in the default tile order (other orders run as plain
/// ones), or rank 3 by rank 2.
double matmul_rate(const MatmulShape& shape, int cores, const Rates& rates, bool default_order = true);

/// How much longer arithmetic takes because cores that combine partial sums use one corelet only.
double one_corelet(const MatmulSplit& split);

/// Part of both operands that is read again because a core's piece of the result is large.
double operand_reread(const MatmulShape& shape, const MatmulSplit& split);

/// How full the arrays run with so many rows per core: passes of 8 rows, full at 64 (docs/reference/timing.md#matmul).
double array_fill(double rows_per_core);

/// Time of one matmul that reads and writes off-chip memory: arithmetic at the sustained rate; traffic plus
/// operand re-reads when a core's output tile is large; a penalty for wide tiles cut in many pieces.
MatmulTime matmul_time(const MatmulShape& shape, const MatmulSplit& split, const Rates& rates,
                       bool default_order = true);

/// What the cores that read one slice of an operand together get of it: less with few rows on a core, and
/// where they combine sums.
double shared_slice_rate(double rows_per_core, const MatmulSplit& split, const Rates& rates);

/// Whether a weight streams as in decoding: shared, for up to 32 rows.
bool streams_weight(const MatmulShape& shape);

/// What all slices of such a weight get together.
double weight_rate(double rows_per_core, const MatmulSplit& split, const Rates& rates);

/// Kernel time of a decode matmul (`streams_weight`) in a closed form: the weight comes in cores / m slices,
/// arithmetic goes meanwhile, the partial sums of a K split then travel the ring in k - 1 steps of 4-byte
/// values. docs/timing.md compares it with the measured sweep.
Nanos decode_matmul_time(const MatmulShape& shape, const MatmulSplit& split, const Rates& rates);

}  // namespace spyre
