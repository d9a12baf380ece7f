#include "spyre/device/exec/count_run.h"

namespace spyre::exec {

Result<RunCounts> count_run(const DeviceProgram& program, const Machine& machine) {
  LaunchValues launch;
  for (const Parameter& parameter : program.parameters) {
    launch.parameters.push_back(parameter.arg_index ? 0 : parameter.max_value.value_or(0));
  }
  RunCounts counts;
  counts.ops.resize(program.ops.size());
  const auto step = [&](int op, const SymbolValues& symbols, int64_t instruction) -> Status {
    SPYRE_ASSIGN_OR_RETURN(const BoundOp bound,
                           bind_op(program.ops[static_cast<size_t>(op)], symbols, instruction));
    counts.ops[static_cast<size_t>(op)].add(count_execute(bound, machine));
    return Status();
  };
  SPYRE_TRY(walk_program(program, launch, step));
  return counts;
}

}  // namespace spyre::exec
