#pragma once

#include <functional>

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"
#include "spyre/lx/planner.h"

namespace spyre {

/// Keeps buffers in LX, the scratchpad of the cores, instead of device memory.
///
///     m = max x;  d = x - m;  e = exp d;  s = sum e;  y = e / s          (M x N, one core)
///
///     in device memory     x x m . d . e . . s . y     8MN + 4N elements
///     m, d, e, s in LX     x x . . . . . . . . . y     3MN
///     and a clone of x     x . . . . . . . . . . y     2MN
///
/// Which buffers may live there, which do, and at which address is the planner's word (lx/planner.h). Placed buffers get
/// `BufferPlace::kLx`. Copies (lx/copies.h) are inserted where a plan needs them, and readers redirected to them: of
/// inputs, of what device memory needs too, of what is fetched again, of what cores need in another division.
///
/// Needs divided work. Changes no result, bit for bit.
Result<lx::Plan> plan_scratchpad(DeviceGraph& graph, lx::Planner& planner,
                                 const std::function<void()>& progress = {});

}  // namespace spyre
