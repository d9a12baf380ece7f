#pragma once

#include <cstdint>
#include <vector>

#include "spyre/graph/device_graph.h"

namespace spyre {

/// Cuts the list of nodes into bundles of so many operations each, launched one after another; the last may
/// have fewer. 0: one bundle, as large as the graph.
///
///     m d e s y, two each      ->     m d | e s | y
///
/// Copies that planning inserts later go into the bundle of the node they are made for.
void cut_bundles(DeviceGraph& graph, int64_t operations);

/// How many bundles the graph has: at least one.
int64_t bundle_count(const DeviceGraph& graph);

/// For every bundle whether it is *non-terminal*: it leaves something in LX that a later bundle reads, so
/// nobody else may have the cores before that one has run. Never true of the last.
///
///     m d | e s | y     d and e in LX, s in device memory: both cuts are crossed, by d and by e
std::vector<bool> non_terminal_bundles(const DeviceGraph& graph);

}  // namespace spyre
