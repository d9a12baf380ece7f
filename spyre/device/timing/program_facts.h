#pragma once

#include <map>
#include <span>
#include <string>

#include "spyre/base/json_fwd.h"
#include "spyre/cost/card_model.h"
#include "spyre/device/exec/interpreter.h"
#include "spyre/device/timing/rate_over_time.h"
#include "spyre/device/timing/timeline.h"
#include "spyre/program/origin.h"

namespace spyre::timing {

/// A program as it is launched, and what is known of its operations.
struct LaunchedProgram {
  const program::DeviceProgram* program = nullptr;
  exec::LaunchValues launch;
  std::map<std::string, program::OpOrigin> origins;  ///< by sdsc file
};

/// Everything a report says about one launch of a kernel, its programs one after the other: time, traffic, LX, what
/// bounds it and what would help. Plain JSON that a file can keep; docs/spec/schema/time_facts.schema.json describes it.
///
///     |launch|-- program 0 --|launch|---- program 1 ----|     one axis from 0 to `totals.total_us`
///
/// Sums hold: windows of operations, shares of bounds and the steps of the waterfall each add up to the total.
/// With Detail::kExecutes it is without rows, counters and LX.
Result<Json> program_facts(const std::string& name, std::span<const LaunchedProgram> programs,
                           const CardModel& card, Detail detail);

/// The card as facts show it: names, sizes and peaks.
Json machine_facts(const CardModel& card);

/// Names of what a slice of a timeline can be; slices have positions in this list. Colours of pages go by them.
Json state_names();
int state_of(std::string_view name);

/// A rate as facts have it: moments in whole ns, each followed by the rate from then on.
Json points_of(const RateOverTime& rate);

}  // namespace spyre::timing
