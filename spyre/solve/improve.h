#pragma once

#include "spyre/solve/deadline.h"
#include "spyre/solve/problem.h"
#include "spyre/solve/select.h"

namespace spyre::solve {

/// Makes a legal placement better, window by window, until no window helps or the deadline passes.
///
/// Around each buffer that stays off chip a window of the schedule is opened. Buffers that live wholly inside
/// may move, be spilled or be brought back; all others stay where they are; the exact search decides:
///
///     |  fixed  :  free   free  :  fixed  |
///     |---------:  ? spilled ?  :---------|      the window around one spilled buffer
///
/// When no small window helps any more, larger ones are tried. For problems too large to search as a whole.
/// Never makes a placement worse.
void improve_by_windows(const Problem& problem, Placement& placement, const SelectTricks& tricks,
                        Deadline& deadline);

}  // namespace spyre::solve
