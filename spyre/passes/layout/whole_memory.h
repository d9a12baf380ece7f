#pragma once

#include <optional>

#include "spyre/graph/device_graph.h"

namespace spyre {

/// Views as the whole memory they are parts of. By itself a view is copied in part, where a copy is needed; but what starts
/// inside a stick can only be copied with the elements before it.
///
///     x[:, 3:] of [4, 100]     input x : float16[4, 97] stride=[100, 1] offset=3 storage=400      from column 3 on
///                              input x : float16[4, 100] stride=[100, 1]                           read from column 3 on
///
/// Of a view that is all of its memory, its rows as one: steps that run across rows divide it, or what it is padded to.
///
/// Indices count from the start of the memory, so they stay as they are. None where all views are one row already, or their
/// memory is not that of a dense tensor.
std::optional<DeviceGraph> with_whole_memory(const DeviceGraph& graph);

/// Arguments as they are in `graph` again: what the caller passes is still the view.
void see_in_part(DeviceGraph& whole, const DeviceGraph& graph);

}  // namespace spyre
