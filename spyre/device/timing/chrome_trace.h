#pragma once

#include <string>

#include "spyre/device/timing/timeline.h"
#include "spyre/program/device_program.h"

namespace spyre::timing {

/// The timeline (Detail::kCores) in the Chrome trace format, which Perfetto and chrome://tracing open.
///
///     executes   | 0 sdsc_0.json (exp)      | 1 sdsc_1.json (sum) |      with what bounds each, and its bytes
///     core 0     | load    | vector | store | load      | idle    |      one state after the other (`core_states`)
///     core 1     ...
///     counters   off-chip read and written, ring, multiply-accumulates: over all cores
///
/// Times are in us, as the format wants them, slices to a whole ns. Slices of a track never overlap; a core's
/// slices fill the kernel; counters over time add up to the bytes and operations of the timeline.
std::string chrome_trace(const Timeline& timeline, const program::DeviceProgram& program);

}  // namespace spyre::timing
