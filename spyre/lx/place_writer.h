#pragma once

#include "spyre/lx/allocation_problem.h"

namespace spyre::lx {

/// Writes a placement into the graph: places, copies (lx_copies.h), and who reads which copy.
///
///     y made and read by node 1, evicted, read by nodes 5 and 6
///
///     node 0   y_lx = ...                 LX
///              y = y_lx                   copied out, once
///     node 1   ... y_lx
///              y_lx_1 = y                 fetched again, perhaps at another address
///     node 5   ... y_lx_1
///     node 6   ... y_lx_1
void write_places(DeviceGraph& graph, const GraphAccess& access, const AllocationProblem& allocation,
                  const solve::Placement& placement);

}  // namespace spyre::lx
