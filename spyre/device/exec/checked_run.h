#pragma once

#include <functional>
#include <vector>

#include "spyre/device/exec/checker.h"

namespace spyre::exec {

/// What an executor does with one bound op: `interpret_op`, or a faster one that gives the same bytes.
using OpExecutor = std::function<Status(const BoundOp&, CardMemory&)>;

/// A run under the checker.
struct CheckedRun {
  Status status;     ///< of the execution itself, as without the checker
  RunCounts counts;  ///< up to where it stopped
  std::vector<Finding> findings;

  bool clean() const { return status.ok() && findings.empty(); }
};

/// Runs a program as `interpret` does, with the checker looking at each execute before it runs. Findings do
/// not stop the run; a fault does, and what was found before it is kept.
CheckedRun run_checked(const DeviceProgram& program, const LaunchValues& launch, CardMemory& memory,
                       Checker& checker, const OpExecutor& execute = interpret_op,
                       const RunOptions& options = {});

/// The checker alone: it reads no memory, so a launch can be looked at before it runs, by whatever executor.
/// Of a launch of several bundles one program after the other is looked at; `last` says which ends it.
CheckedRun check_launch(const DeviceProgram& program, const LaunchValues& launch, Checker& checker,
                        const RunOptions& options = {}, bool last = true);

}  // namespace spyre::exec
