#include "spyre/runtime/kernel_times.h"

#include "spyre/device/timing/simulate.h"

namespace spyre {
namespace {

/// A program that cannot be timed takes a launch.
KernelTimes::Time time_of(const LoadedProgram& program, const std::vector<int64_t>& parameters) {
  const auto timeline = timing::simulate(program.program(), {.parameters = parameters}, program.machine(),
                                         fitted_rates(), timing::Detail::kTotals);
  return timeline.ok() ? KernelTimes::Time{timeline.value().launch, timeline.value().kernel}
                       : KernelTimes::Time{{fitted_rates().launch}, {}};
}

}  // namespace

std::vector<int64_t> extents_among(const std::vector<int64_t>& parameters, const LoadedProgram& program) {
  const std::vector<program::Parameter>& described = program.program().parameters;
  std::vector<int64_t> extents;
  for (size_t i = 0; i < described.size(); ++i) {
    if (described[i].kind == program::ParameterKind::kExtent) {
      extents.push_back(parameters[i]);
    }
  }
  return extents;
}

KernelTimes::Time KernelTimes::at(const std::vector<int64_t>& parameters) {
  std::vector<int64_t> key = extents_among(parameters, *program_);
  const std::lock_guard lock(mutex_);
  const auto found = times_.find(key);
  if (found != times_.end()) {
    return found->second;
  }
  return times_[std::move(key)] = time_of(*program_, parameters);
}

}  // namespace spyre
