#include "spyre/cost/rates.h"

namespace spyre {

const Rates& fitted_rates() {
  // Sections of docs/reference/timing.md, unless said otherwise.
  static constexpr Rates kFitted = {
      .hbm_one_way = 150,      // Bundles
      .hbm_peak = 204.8,       // docs/reference/machine.md#rates
      .turnaround = 0.00574,   // Bundles: balanced traffic then runs at 104.9 GB/s
      .reread_share = 0.85,    // Bundles
      .stick_swap = 116,       // Access patterns
      .outer_reduction = 113,  // Access patterns
      .reduction_share = {0.11, 0.22, 0.43, 0.54, 0.54, 1},  // Reductions
      .slice_alone = 5.435,         // docs/timing.md#decode-matmuls: fitted to the measured sweep
      .slice_shared = 59.05,        // docs/timing.md#decode-matmuls
      .slice_one_corelet = 0.709,   // docs/timing.md#decode-matmuls
      .slice_few_rows = 0.134,      // docs/timing.md#decode-matmuls
      .weight_columns_cut = 147.4,  // docs/timing.md#decode-matmuls
      .weight_columns_whole = 127,  // docs/timing.md#decode-matmuls
      .weight_few_rows = 0.049,     // docs/timing.md#decode-matmuls
      .mac_peak = 1536,             // docs/reference/machine.md#rates
      .mac_sustained = 1140,        // Constants: 74 % of the peak
      .mac_batched = 160,           // Constants
      .mac_projection_few = 705,    // Constants
      .mac_projection_many = 470,   // Constants
      .ring = 192,                  // docs/reference/machine.md#rates, inferred
      .relayout_row = -1.14,        // Relayout, within 25 %
      .relayout_row_log = 3.92,     // Relayout
      .relayout_bytes = 547,        // Relayout
      .replicated_per_core = 2.2,   // Constants, inferred
      .vector = 96,                 // 64 lanes (another model of the card, inferred) at 1.5 GHz
      .lx = 192,                    // one stick a cycle, as the ring; inferred
      .launch = 21'400,             // Launches: fitted
      .launch_operand = 880,        // Launches: fitted
      .launch_cores = 9'000,        // Launches: fitted
      .overlap = 1,                 // Bundles: in reports; the joint planner uses 0.46
      .link = 57.6,                 // docs/reference/machine.md#link-to-the-host
      .link_start = 1000,           // the same: order of magnitude
  };
  return kFitted;
}

const Rates& toy_rates() {
  static constexpr Rates kToy = {
      .hbm_one_way = 1,
      .hbm_peak = 1,
      .turnaround = 0,
      .reread_share = 1,
      .stick_swap = 1,
      .outer_reduction = 1,
      .reduction_share = {1, 1, 1, 1, 1, 1},
      .slice_alone = 1,
      .slice_shared = 1,
      .slice_one_corelet = 1,
      .slice_few_rows = 0,
      .weight_columns_cut = 1,
      .weight_columns_whole = 1,
      .weight_few_rows = 0,
      .mac_peak = 1,
      .mac_sustained = 1,
      .mac_batched = 1,
      .mac_projection_few = 1,
      .mac_projection_many = 1,
      .ring = 1,
      .relayout_row = 0,
      .relayout_row_log = 1,
      .relayout_bytes = 1,
      .replicated_per_core = 1,
      .vector = 1,
      .lx = 1,
      .launch = 10,
      .launch_operand = 0,
      .launch_cores = 0,
      .overlap = 1,
      .link = 1,
      .link_start = 0,
  };
  return kToy;
}

}  // namespace spyre
