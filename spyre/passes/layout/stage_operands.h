#pragma once

#include "spyre/passes/layout/stage_results.h"

/// What lies in a way that only copies read, by way of a copy that lies as a fresh tensor does.
///
/// Two heads that share a stick, or the order that narrowing left, beside a tensor that has neither:
///
///     y[p0, p1] = k[32*p1 + p0] * c[p1]       copied     t[p0, p1] = k[32*p1 + p0];   u[p1] = c[p1]
///                                             computed   y[p0, p1] = t[p0, p1] * u[p1]
namespace spyre {

/// None where all operands that are computed with lie as fresh tensors do already. Needs select-ops.
std::optional<StagedGraph> stage_operands(const DeviceGraph& graph);

}  // namespace spyre
