#include "spyre/device/exec/checked_run.h"

namespace spyre::exec {

CheckedRun run_checked(const DeviceProgram& program, const LaunchValues& launch, CardMemory& memory,
                       Checker& checker, const OpExecutor& execute, const RunOptions& options) {
  CheckedRun run;
  run.counts.ops.resize(program.ops.size());
  checker.begin_launch(program, launch);
  const auto step = [&](int op, const SymbolValues& symbols, int64_t instruction) -> Status {
    SPYRE_ASSIGN_OR_RETURN(const BoundOp bound, bind_op(program.ops[op], symbols, instruction));
    SPYRE_TRY(check_points(bound, options.max_points));
    checker.check_execute(bound);
    SPYRE_TRY(execute(bound, memory));
    const OpCounts counted = count_execute(bound, *options.machine);
    run.counts.ops[op].add(counted);
    if (options.observe) {
      options.observe(bound, counted);
    }
    return Status();
  };
  run.status = walk_program(program, launch, step);
  run.findings = run.status.ok() ? checker.end_launch() : checker.abandon_launch();
  return run;
}

CheckedRun check_launch(const DeviceProgram& program, const LaunchValues& launch, Checker& checker,
                        const RunOptions& options, bool last) {
  CheckedRun run;
  checker.launching() ? checker.next_bundle(program, launch) : checker.begin_launch(program, launch);
  const auto step = [&](int op, const SymbolValues& symbols, int64_t instruction) -> Status {
    SPYRE_ASSIGN_OR_RETURN(const BoundOp bound, bind_op(program.ops[op], symbols, instruction));
    SPYRE_TRY(check_points(bound, options.max_points));
    checker.check_execute(bound);
    return Status();
  };
  run.status = walk_program(program, launch, step);
  run.findings = !run.status.ok() ? checker.abandon_launch()
                 : last           ? checker.end_launch()
                                  : checker.end_bundle();
  return run;
}

}  // namespace spyre::exec
