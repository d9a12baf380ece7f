#pragma once

#include <array>

namespace spyre {

/// A span of time, in nanoseconds. Estimates are real numbers; simulated time is counted in Cycles.
struct Nanos {
  double ns = 0;

  constexpr double us() const { return ns / 1000; }
  friend constexpr auto operator<=>(const Nanos&, const Nanos&) = default;
  friend constexpr Nanos operator+(Nanos a, Nanos b) { return {a.ns + b.ns}; }
  friend constexpr Nanos operator-(Nanos a, Nanos b) { return {a.ns - b.ns}; }
  friend constexpr Nanos operator*(Nanos a, double factor) { return {a.ns * factor}; }
  friend constexpr Nanos operator/(Nanos a, double divisor) { return {a.ns / divisor}; }
};

/// The speeds all estimates are made of. Bandwidths are bytes per nanosecond, that is GB/s. Every figure
/// stands here once; rates.cpp names the source of each value.
struct Rates {
  // Off-chip memory.
  double hbm_one_way;      ///< all traffic in one direction
  double hbm_peak;         ///< the planner's round figure for a full bus
  double turnaround;       ///< ns per byte of the smaller direction, for turning the bus around
  double reread_share;     ///< part of a loop-invariant re-read that is not hidden
  double stick_swap;       ///< restickify
  double outer_reduction;  ///< reduction over the outer dimension
  std::array<double, 6> reduction_share;  ///< of the bandwidth, for a lone reduction on 1, 2, 4 .. 32 cores

  // Slices of operands on their way from off-chip memory to the cores.
  double slice_alone;           ///< of one core
  double slice_shared;          ///< read by several cores together, with 8 rows or more on each
  double slice_one_corelet;     ///< part of that where cores combine sums, on one corelet each
  double slice_few_rows;        ///< exponent of (rows of a core / 8), below 8 rows
  double weight_columns_cut;    ///< all slices of a decode weight together, where its columns are cut
  double weight_columns_whole;  ///< the same where they are not
  double weight_few_rows;       ///< exponent, as above

  // Matrix arithmetic, multiply-accumulates per ns and core.
  double mac_peak;       ///< both corelets busy every cycle
  double mac_sustained;  ///< fitted from device runs
  double mac_batched;  ///< both operands rank 3 in the default tile order, 4 or more batches, 8 or more cores
  double mac_projection_few;   ///< rank 3 by rank 2, up to 4 batches
  double mac_projection_many;  ///< the same, more batches

  // Between cores.
  double ring;                 ///< one direction of one link
  double relayout_row;         ///< ns per piece moved ...
  double relayout_row_log;     ///< ... and per doubling of the split
  double relayout_bytes;       ///< bandwidth of the moved bytes
  double replicated_per_core;  ///< one core's share when each core loads its own copy of an operand

  // Inside a core.
  double vector;  ///< elements per ns of a core's vector arrays
  double lx;      ///< one operand of a vector operation, in or out of LX

  // Around a kernel.
  double launch;          ///< host time per bundle launch, ns; not part of kernel time
  double launch_operand;  ///< more for each operand of an execute in off-chip memory
  double launch_cores;    ///< more when there are several cores to set up
  double overlap;         ///< of compute and memory: 1 means the longer one counts, 0 that both do

  // Between host and card.
  double link;        ///< payload in one direction
  double link_start;  ///< ns from the request of a copy to its first byte
};

/// The card, as fitted by upstream from device runs.
const Rates& fitted_rates();

/// Every speed 1 byte, or 1 multiply-accumulate, per ns; no turnaround, full overlap: sums to do in one's
/// head.
const Rates& toy_rates();

}  // namespace spyre
