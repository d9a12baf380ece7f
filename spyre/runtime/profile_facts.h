#pragma once

#include <functional>
#include <map>
#include <string>

#include "spyre/base/json_fwd.h"
#include "spyre/program/origin.h"
#include "spyre/runtime/activity_log.h"

namespace spyre {

/// What whoever compiled a kernel knows of it.
struct KernelOrigins {
  std::map<std::string, program::OpOrigin> by_file;  ///< by sdsc file
  std::string modules;                               ///< of the model
  std::string artifact;                              ///< folder
};
using FindOrigins = std::function<KernelOrigins(const ProgramRun&)>;

/// What the cards did while somebody listened, as facts for a report: those of a program
/// (device/timing/program_facts.h), with kernels and copies instead of operations and streams instead of cores, and
/// the three longest kernels whole.
///
///     stream 0   |launch|== kernel a ==|launch|= b =|  idle  |-copy-|        0 to `totals.total_us`, simulated
///
/// Shares of bounds and steps of the waterfall add up to the total; of several cards they are the average.
Json profile_facts(const std::string& name, const ActivityLog::Record& record, const FindOrigins& origins);

}  // namespace spyre
