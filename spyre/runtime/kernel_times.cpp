#include "spyre/runtime/kernel_times.h"

#include <utility>

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

KernelTimes::KernelTimes(LoadedProgramRef program) : program_(std::move(program)) {
  const std::vector<program::Parameter>& parameters = program_->program().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind != program::ParameterKind::kAddress) {
      extents_.push_back(i);
    }
  }
}

KernelTimes::Time KernelTimes::at(const std::vector<int64_t>& parameters) {
  std::vector<int64_t> key;
  key.reserve(extents_.size());
  for (const size_t position : extents_) {
    key.push_back(parameters[position]);
  }
  const std::lock_guard lock(mutex_);
  const auto found = times_.find(key);
  if (found != times_.end()) {
    return found->second;
  }
  return times_[std::move(key)] = time_of(*program_, parameters);
}

}  // namespace spyre
