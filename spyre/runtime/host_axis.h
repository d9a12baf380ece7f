#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spyre/runtime/activity_log.h"

namespace spyre {

/// [begin, end) in nanoseconds of the host's system clock.
struct HostSpan {
  int64_t begin = 0, end = 0;
};

/// Where activities stand in a picture that has the host's time along its axis.
///
/// The card is fast and its emulation slow: what takes the card 50 us may have been asked for 5 ms apart. Activities
/// are therefore moved to the right, each as far as is needed to begin no earlier than its call, and at least as far as
/// those that began before it. None is stretched, so lengths are exact; order is kept, and what did not overlap in
/// simulated time does not overlap here.
///
///     simulated   |-- a --|-- b --|-- c --|
///     host            ^ a asked       ^ b asked ^ c asked
///     shown           |-- a --|       |-- b --| |-- c --|
std::vector<HostSpan> on_host_axis(std::span<const Activity> activities);

}  // namespace spyre
