#pragma once

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"
#include "spyre/graph/normal_op.h"
#include "spyre/passes/divide/division/division_problem.h"
#include "spyre/passes/divide/refused_hint.h"

namespace spyre {

/// Cuts every node's loops into slices for the cores: `Loop::split`. The rules are those of division/; this
/// pass only says what each node's loops and tensors are, and which loops the card must keep whole:
///
///  - the dimensions of a table that index tensors point into, and all of a scatter's target;
///  - dimensions that a copy turns into or out of the stick and that end inside one.
///
/// A hint is a wish: one that cannot be followed is taken off its node, logged and returned with its reason,
/// and the work is divided without it.
///
/// Needs layouts and cut loops. Refused: what no division brings within a core's reach.
Result<std::vector<RefusedHint>> divide_work(DeviceGraph& graph, int64_t cores);

/// One node as a problem of division/.
DivisionProblem division_problem(const DeviceGraph& graph, const DeviceNode& node, const NormalOp& op,
                                 int64_t cores);

}  // namespace spyre
