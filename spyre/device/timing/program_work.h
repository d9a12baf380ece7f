#pragma once

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

}  // namespace spyre::timing
