#pragma once

#include <memory>
#include <span>
#include <vector>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/device/exec/checker.h"
#include "spyre/device/exec/executor.h"
#include "spyre/device/program_memory.h"
#include "spyre/program/device_program.h"

namespace spyre {

/// A program in the form the cores run: decoded from its image, checked, everything resolved that does not
/// depend on a launch. Immutable; any number of launches, streams and cards of one machine may share it.
class LoadedProgram {
 public:
  /// Decodes the image at the start of `memory` (program/image.h). The errors are those of reading artifacts.
  static Result<std::shared_ptr<const LoadedProgram>> load(std::span<const std::byte> memory,
                                                           const Machine& machine);

  LoadedProgram(program::DeviceProgram program, const Machine& machine);
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  const program::DeviceProgram& program() const { return program_; }
  const exec::PreparedProgram& prepared() const { return prepared_; }
  const Machine& machine() const { return machine_; }

 private:
  // In this order: the last refers to the two before it.
  const Machine machine_;
  const program::DeviceProgram program_;
  const exec::PreparedProgram prepared_;
};

using LoadedProgramRef = std::shared_ptr<const LoadedProgram>;

/// Who computes. All give the same counts, and but for the last one the same bytes.
enum class Executor {
  kFast,      ///< whole rows at a time, on all host threads; the interpreter where there is no code for that
  kFastOnly,  ///< the same, kUnsupported where there is none
  kInterpreter,  ///< one element at a time, straight from the definitions; the judge
  kExactSums,    ///< the interpreter, with sums whose order does not matter (exec::Sums)
};

struct ExecuteOptions {
  Executor executor = Executor::kFast;
  bool count = true;  ///< false: the counts of the run stay empty
  /// Looks at the whole launch before it runs, as a sanitizer would, and faults instead of running when
  /// anything is wrong. Each launch is judged by itself: what it is given counts as written, scratchpads and
  /// pool as empty. Its bundles are judged together (ExecuteRequest::checker).
  bool check = false;
};

/// One run of a program on a card's cores.
struct ExecuteRequest {
  const LoadedProgram* program = nullptr;
  exec::LaunchValues values;        ///< parameters in signature order, base of the pool
  std::vector<MappedBytes> memory;  ///< all the device memory it may reach
  ExecuteOptions options;
  /// What the checker knows from earlier programs of the same launch; none: there is only this one.
  exec::Checker* checker = nullptr;
  bool last = true;                   ///< program of its launch
  exec::PathCounts* paths = nullptr;  ///< where the fast executor says how executes ran
};

/// Runs it on the given scratchpads. kDeviceFault with core, address and instruction when the
/// program drives the card wrongly; its own memory is then in any state, everything else as before.
Result<exec::RunCounts> execute_on(ProgramMemory::Scratchpads lx, const ExecuteRequest& request);

}  // namespace spyre
