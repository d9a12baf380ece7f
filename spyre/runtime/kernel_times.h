#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "spyre/cost/rates.h"
#include "spyre/device/execute.h"

namespace spyre {

/// The parameters that a launch's time depends on: its extents. Addresses do not count.
std::vector<int64_t> extents_among(const std::vector<int64_t>& parameters, const LoadedProgram& program);

/// How long launches of one program take: found out once for each combination of extents, whatever the addresses.
/// Any thread.
class KernelTimes {
 public:
  struct Time {
    Nanos launch;  ///< of the host
    Nanos kernel;  ///< of the cores
  };

  explicit KernelTimes(LoadedProgramRef program) : program_(std::move(program)) {}

  const LoadedProgramRef& program() const { return program_; }

  /// `parameters` in signature order.
  Time at(const std::vector<int64_t>& parameters);

 private:
  const LoadedProgramRef program_;
  std::mutex mutex_;  // guards times_; a leaf
  std::map<std::vector<int64_t>, Time> times_;
};

}  // namespace spyre
