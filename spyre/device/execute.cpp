#include "spyre/device/execute.h"

#include "spyre/program/image.h"

namespace spyre {

LoadedProgram::LoadedProgram(program::DeviceProgram program, const Machine& machine)
    : machine_(machine), program_(std::move(program)), prepared_(exec::prepare(program_, machine_)) {}

Result<LoadedProgramRef> LoadedProgram::load(std::span<const std::byte> memory, const Machine& machine) {
  SPYRE_ASSIGN_OR_RETURN(program::DeviceProgram read, program::read_image_program(memory, machine));
  return LoadedProgramRef(std::make_shared<const LoadedProgram>(std::move(read), machine));
}

Result<exec::RunCounts> execute_on(ProgramMemory::Scratchpads lx, const ExecuteRequest& request) {
  ProgramMemory memory(request.memory, std::move(lx));
  exec::RunOptions options;
  options.machine = &request.program->machine();
  const LoadedProgram& program = *request.program;
  SPYRE_ASSIGN_OR_RETURN(exec::RunCounts counts,
                         request.options.executor == Executor::kInterpreter
                             ? exec::interpret(program.program(), request.values, memory, options)
                             : program.prepared().execute(request.values, memory, options));
  return request.options.count ? std::move(counts) : exec::RunCounts();
}

}  // namespace spyre
