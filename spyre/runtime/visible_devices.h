#pragma once

#include <vector>

#include "spyre/base/result.h"

namespace spyre {

/// Which cards this process sees, from the environment alone; nothing is opened.
///
/// AIU_WORLD_SIZE cards are emulated (default 1), whatever FLEX_DEVICE says. SPYRE_DEVICES, when not empty,
/// keeps those it lists, in its order: entries that are no index of a card and repeated ones do not count.
///
///     AIU_WORLD_SIZE=4 SPYRE_DEVICES=2,0,2,9   ->   {2, 0}: logical device 0 is card 2, device 1 is card 0
///
/// kInvalidArgument when AIU_WORLD_SIZE or FLEX_DEVICE is malformed.
Result<std::vector<int>> visible_devices();

}  // namespace spyre
