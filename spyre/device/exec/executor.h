#pragma once

#include <memory>
#include <vector>

#include "spyre/device/exec/interpreter.h"
#include "spyre/device/exec/vector_kernels.h"

/// The fast executor: the interpreter's answers, bit for bit, at the speed of the host.
///
/// An op is *prepared* once: its layout becomes distances in bytes, its family plans loops, vector kernels
/// and tables are picked, its counts are computed. Running it then means finding the bytes (`CardMemory`
/// spans), checking that nothing was assumed that this launch does not keep, and looping. Whatever a family
/// has no fast code for, and whatever does not keep the assumptions (memory without spans, cores that start
/// where their slices do not say, ranges that memory does not have), runs through the interpreter, which also
/// words the faults. `RunOptions::paths` tells how often.
///
/// Results do not depend on the number of threads: an element is computed by one task, in the defined order.
namespace spyre::exec {

class PreparedOp;

/// A program with everything computed that does not depend on a launch. Refers to the program, which must
/// live as long. May be run by several threads at once.
class PreparedProgram {
 public:
  explicit PreparedProgram(const DeviceProgram& program, const VectorKernels& kernels,
                           const Machine& machine);
  ~PreparedProgram();
  PreparedProgram(PreparedProgram&&) noexcept;
  PreparedProgram& operator=(PreparedProgram&&) noexcept;

  /// Runs to the end; the twin of `interpret`. `options.machine` is that of the preparation.
  Result<RunCounts> execute(const LaunchValues& launch, CardMemory& memory,
                            const RunOptions& options = {}) const;

  const DeviceProgram& program() const { return *program_; }

 private:
  const DeviceProgram* program_;
  const VectorKernels* kernels_;
  const Machine* machine_;
  std::vector<std::unique_ptr<PreparedOp>> ops_;
};

/// Prepares for the best instruction set of this processor.
PreparedProgram prepare(const DeviceProgram& program, const Machine& machine = spyre_card());

/// Prepares and runs.
Result<RunCounts> execute(const DeviceProgram& program, const LaunchValues& launch, CardMemory& memory,
                          const RunOptions& options = {});

}  // namespace spyre::exec
