#pragma once

#include <string>

#include "spyre/base/json.h"

namespace spyre::report {

/// A scratchpad plan as a page (page.h).
///
///     address ^   +------+                  the map of LX: one rectangle per placed buffer, from its first
///             |   |  d   +-----+            node to its last. All cores hold the same addresses, so one map
///             | +-+--+   |  e  |            is enough. Hovering a rectangle, or a row of the table below it,
///             | | m  +---+-----+            tells everything about the buffer.
///             +-----------------> nodes
std::string plan_page(const Json& plan);

}  // namespace spyre::report
