#pragma once

#include <functional>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/device/exec/interpreter.h"
#include "spyre/device/timing/execute_work.h"

namespace spyre::timing {

/// The work of every execute of a launch, in the order they run. Tensor arguments count as memory of their
/// own each, wherever the launch says they lie. Refused: a program for cores that the machine lacks.
Result<std::vector<ExecuteWork>> program_work(const program::DeviceProgram& program,
                                              const exec::LaunchValues& launch, const Machine& machine,
                                              const Rates& rates);

/// Called for each execute of a launch, in the order they run, with the op's index.
using VisitBound = std::function<Status(const exec::BoundOp& bound, int op)>;

/// Binds every execute of a launch. Each tensor argument has memory of its own, wherever the launch says it lies.
Status visit_executes(const program::DeviceProgram& program, const exec::LaunchValues& launch,
                      const VisitBound& visit);

/// Whether an address of a visited execute lies in the memory for intermediate results.
bool in_pool(const program::DeviceProgram& program, int64_t address);

}  // namespace spyre::timing
