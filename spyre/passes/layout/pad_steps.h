#pragma once

#include <optional>

#include "spyre/graph/device_graph.h"

namespace spyre {

/// Reads and writes that step over positions, through copies whose dimensions end with a whole step. The card
/// has no steps: it addresses every second row of 10 as the first of each pair of [5, 2], and 9 rows are no
/// pairs.
///
///     y[a, b, c] = x[a, 2b, c]      x' [4, 10, 20] with x [4, 9, 20] at its start;     y[a, b, c] = x'[a,
///     (b, 0), c]
///
/// Windows that overlap are read in parts that do not. What is written in steps and has other values between
/// them is copied, written there, and copied back. None where every step divides its dimension already. Needs
/// select-ops; runs before layouts.
std::optional<DeviceGraph> pad_steps(const DeviceGraph& graph);

}  // namespace spyre
