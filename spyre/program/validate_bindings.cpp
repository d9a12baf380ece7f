// Rules of a bundle: what it executes has every symbol it needs.

#include <fmt/format.h>

#include <algorithm>

#include "spyre/program/refusal.h"
#include "spyre/program/validate.h"

namespace spyre::program {
namespace {

Status execute_binds_all(const DeviceProgram& program, const Execute& execute) {
  const ProgramOp& op = program.ops[execute.op];
  const auto bound = [&](int64_t symbol) {
    return std::any_of(execute.bindings.begin(), execute.bindings.end(),
                       [&](const Execute::Binding& b) { return b.symbol == symbol; });
  };
  for (const ProgramDim& dim : op.dims) {
    if (dim.symbol && !bound(*dim.symbol)) {
      return refusal("bundle.mlir", "symbol_ids",
                     fmt::format("no {}, the extent of '{}' in {}", *dim.symbol, dim.label, op.file),
                     "every symbol of the executed file");
    }
  }
  for (const Tensor& tensor : op.tensors) {
    for (const CoreStart& start : tensor.start) {
      if (start.symbolic && !bound(start.value)) {
        return refusal("bundle.mlir", "symbol_ids",
                       fmt::format("no {}, a start address of {} in {}", start.value, tensor.name, op.file),
                       "every symbol of the executed file");
      }
    }
  }
  return Status();
}

Status steps_bind_all(const DeviceProgram& program, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (const auto* execute = std::get_if<Execute>(&step.what)) {
      SPYRE_TRY(execute_binds_all(program, *execute));
    } else {
      SPYRE_TRY(steps_bind_all(program, std::get<ProgramLoop>(step.what).body));
    }
  }
  return Status();
}

}  // namespace

Status validate_bindings(const DeviceProgram& program) {
  return steps_bind_all(program, program.steps);
}

}  // namespace spyre::program
