#include "spyre/device/execute.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/device/exec/checked_run.h"
#include "spyre/program/image.h"

namespace spyre {

LoadedProgram::LoadedProgram(program::DeviceProgram program, const Machine& machine)
    : machine_(machine), program_(std::move(program)), prepared_(exec::prepare(program_, machine_)) {}

Result<LoadedProgramRef> LoadedProgram::load(std::span<const std::byte> memory, const Machine& machine) {
  SPYRE_ASSIGN_OR_RETURN(program::DeviceProgram read, program::read_image_program(memory, machine));
  return LoadedProgramRef(std::make_shared<const LoadedProgram>(std::move(read), machine));
}

namespace {

constexpr size_t kMostFindings = 8;

Status check_before_run(const ExecuteRequest& request, const exec::RunOptions& options) {
  exec::Checker alone(*options.machine);
  exec::Checker& checker = request.checker != nullptr ? *request.checker : alone;
  if (!checker.launching()) {
    for (const MappedBytes& mapped : request.memory) {
      checker.note_host_write(static_cast<uint64_t>(mapped.at.value()), mapped.bytes.size(), "the caller");
    }
  }
  const exec::CheckedRun run =
      exec::check_launch(request.program->program(), request.values, checker, options, request.last);
  SPYRE_TRY(run.status);
  if (run.findings.empty()) return Status();
  Error error(ErrorKind::kDeviceFault, fmt::format("the checker found {} problems", run.findings.size()));
  for (size_t i = 0; i < std::min(run.findings.size(), kMostFindings); ++i) {
    error.notes.push_back(to_string(run.findings[i]));
  }
  return error;
}

}  // namespace

Result<exec::RunCounts> execute_on(ProgramMemory::Scratchpads lx, const ExecuteRequest& request) {
  ProgramMemory memory(request.memory, std::move(lx));
  exec::RunOptions options;
  options.machine = &request.program->machine();
  options.paths = request.paths;
  const Executor executor = request.options.executor;
  options.may_interpret = executor != Executor::kFastOnly;
  options.sums = executor == Executor::kExactSums ? exec::Sums::kInDoubles : exec::Sums::kInOrder;
  const LoadedProgram& program = *request.program;
  if (request.options.check) SPYRE_TRY(check_before_run(request, options));
  SPYRE_ASSIGN_OR_RETURN(exec::RunCounts counts,
                         executor == Executor::kInterpreter || executor == Executor::kExactSums
                             ? exec::interpret(program.program(), request.values, memory, options)
                             : program.prepared().execute(request.values, memory, options));
  return request.options.count ? std::move(counts) : exec::RunCounts();
}

}  // namespace spyre
