#pragma once

#include "spyre/base/result.h"
#include "spyre/device/exec/interpreter.h"

namespace spyre::exec {

/// What a run of the program counts, without running it: counts follow from the program and its bindings
/// alone, so a layer of a large model is counted in milliseconds and needs no memory.
///
/// Every address parameter is taken as 0 and every extent as its largest value.
Result<RunCounts> count_run(const DeviceProgram& program, const Machine& machine = spyre_card());

}  // namespace spyre::exec
