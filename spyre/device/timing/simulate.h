#pragma once

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/cost/rates.h"
#include "spyre/device/exec/interpreter.h"
#include "spyre/device/timing/timeline.h"

namespace spyre::timing {

/// Times one launch of a program. Nothing is executed and no memory is needed.
///
/// The answer follows from the program and the extents among the launch values alone: every tensor argument
/// counts as memory of its own, wherever it lies, so an answer may be kept for all launches with the same
/// extents. Deterministic.
///
/// What happens when (docs/adr/0061-time-of-a-launch.md says why):
///  - Executes compute one after another, with a barrier between them. Buffers are double: while an execute
///    computes, the next one loads and the one before it stores. An execute that reads what an earlier one
///    stores waits for the last byte.
///  - Within an execute a core computes while its slices arrive and leave; it is done when its work is done
///    and its last slice is there.
///  - All transfers share the off-chip memory, every core alike; one alone is no faster than its cores can
///    take it. A slice that several cores read passes once, and the ring hands it round.
///  - Partial sums travel the ring in k - 1 steps when all cores have computed; links carry both directions,
///    transfers that meet on a link share it.
Result<Timeline> simulate(const program::DeviceProgram& program, const exec::LaunchValues& launch,
                          const Machine& machine, const Rates& rates, Detail detail);

/// Launch values for `simulate` before anything runs: every extent at its largest.
exec::LaunchValues largest_extents(const program::DeviceProgram& program);

}  // namespace spyre::timing
