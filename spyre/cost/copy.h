#pragma once

#include "spyre/base/units.h"
#include "spyre/cost/rates.h"

namespace spyre {

/// How long copies take that no program makes: those of the DMA engines.

/// Between the host and the card, in one direction: what it takes to start, then the bytes at the speed of the link.
/// Each direction has its own lanes, so both may run at once.
Nanos link_copy_time(Bytes size, const Rates& rates);

/// One value written all over a part of device memory.
Nanos fill_time(Bytes size, const Rates& rates);

/// From one place of device memory to another: every byte crosses the bus twice, and it turns around.
Nanos card_copy_time(Bytes size, const Rates& rates);

}  // namespace spyre
