#pragma once

#include <string>
#include <string_view>

#include "spyre/graph/device_graph.h"

namespace spyre {

/// The part of a node where `loop` runs over [begin, begin + extent) of what it ran over.
/// Its name is that of the node with `suffix`.
DeviceNode part_of(const DeviceNode& node, const std::string& loop, int64_t begin, int64_t extent,
                   std::string_view suffix = "");

}  // namespace spyre
