#include "spyre/device/exec/interpreter.h"

#include <fmt/format.h>

#include "spyre/device/exec/kernels.h"
#include "spyre/program/bundle_text.h"
#include "spyre/program/linear_form.h"

namespace spyre::exec {
namespace {

class Walker {
 public:
  Walker(const DeviceProgram& program, const LaunchValues& launch, const VisitExecute& execute)
      : launch_(launch), execute_(execute), loops_(program.loop_count, 0) {}

  Status walk(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (const auto* execute = std::get_if<Execute>(&step.what)) {
        SPYRE_TRY(run(*execute));
      } else {
        SPYRE_TRY(loop(std::get<ProgramLoop>(step.what)));
      }
    }
    return Status();
  }

 private:
  Result<int64_t> value(const LinearForm& form) const {
    Result<int64_t> known =
        evaluate(form, {.parameters = launch_.parameters, .pool = launch_.pool_base, .loops = loops_});
    if (!known.ok()) {
      return Error(ErrorKind::kDeviceFault,
                   fmt::format("instruction {}: {}", instruction_, known.error().message));
    }
    return known;
  }

  Status loop(const ProgramLoop& loop) {
    SPYRE_ASSIGN_OR_RETURN(const int64_t lower, value(loop.lower));
    SPYRE_ASSIGN_OR_RETURN(const int64_t upper, value(loop.upper));
    SPYRE_ASSIGN_OR_RETURN(const int64_t step, value(loop.step));
    int64_t span = 0;
    if (step < 1 || __builtin_sub_overflow(upper, lower, &span) || span / step > kMaxTripCount) {
      return Error(
          ErrorKind::kDeviceFault,
          fmt::format("loop {}: found {} to {} step {}, allowed: a step of at least 1 and at most {} rounds",
                      loop.counter, lower, upper, step, kMaxTripCount));
    }
    for (int64_t i = lower; i < upper; i += step) {
      loops_[loop.counter] = i;
      SPYRE_TRY(walk(loop.body));
    }
    return Status();
  }

  Status run(const Execute& execute) {
    symbols_.clear();
    for (const Execute::Binding& binding : execute.bindings) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t bound, value(binding.value));
      symbols_.emplace_back(binding.symbol, bound);
    }
    return execute_(execute.op, symbols_, instruction_++);
  }

  const LaunchValues& launch_;
  const VisitExecute& execute_;
  SymbolValues symbols_;
  std::vector<int64_t> loops_;
  int64_t instruction_ = 0;
};

void run_family(const Work& work) {
  switch (work.op().info->family) {
    case OpFamily::kPointwise:
      return run_pointwise(work);
    case OpFamily::kReduction:
      return run_reduction(work);
    case OpFamily::kMatmul:
    case OpFamily::kConv:
    case OpFamily::kDepthwise:
      return run_contraction(work);
    case OpFamily::kConversion:
      return run_conversion(work);
    case OpFamily::kCopy:
      return run_copy(work);
    case OpFamily::kLayerNorm:
      return run_layernorm(work);
    case OpFamily::kTopK:
      return run_topk(work);
    case OpFamily::kQuantScale:
      return run_quant_scale(work);
    case OpFamily::kPool:
      return run_pool(work);
    case OpFamily::kShuffle:
      return run_shuffle(work);
  }
}

}  // namespace

Status walk_program(const DeviceProgram& program, const LaunchValues& launch, const VisitExecute& execute) {
  if (launch.parameters.size() != program.parameters.size()) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("launch: found {} parameters, allowed: {}, as the bundle has",
                             launch.parameters.size(), program.parameters.size()));
  }
  return Walker(program, launch, execute).walk(program.steps);
}

Status check_points(const BoundOp& bound, int64_t allowed) {
  double points = 0;
  for (const Box& box : bound.boxes) {
    double product = 1;
    for (int d = 0; d < bound.dims(); ++d) {
      product *= static_cast<double>(box.extent(d));
    }
    points += product;
  }
  if (points > static_cast<double>(allowed)) {
    return Error(ErrorKind::kDeviceFault,
                 fmt::format("{}: found {} points of work, allowed: {}", bound.where(), points, allowed));
  }
  return Status();
}

namespace {

Status run_op(const BoundOp& bound, CardMemory& memory, Sums sums) {
  Fault fault;
  WriteBuffer writes;
  run_family({.bound = bound, .memory = memory, .fault = fault, .writes = writes, .sums = sums});
  SPYRE_TRY(fault.status());
  return writes.commit(bound, memory);
}

}  // namespace

Status interpret_op(const BoundOp& bound, CardMemory& memory) {
  return run_op(bound, memory, Sums::kInOrder);
}

Result<RunCounts> interpret(const DeviceProgram& program, const LaunchValues& launch, CardMemory& memory,
                            const RunOptions& options) {
  RunCounts counts;
  counts.ops.resize(program.ops.size());
  const auto execute = [&](int op, const SymbolValues& symbols, int64_t instruction) -> Status {
    SPYRE_ASSIGN_OR_RETURN(const BoundOp bound, bind_op(program.ops[op], symbols, instruction));
    SPYRE_TRY(check_points(bound, options.max_points));
    SPYRE_TRY(run_op(bound, memory, options.sums));
    const OpCounts counted = count_execute(bound, *options.machine);
    if (options.count) {
      counts.ops[op].add(counted);
    }
    if (options.observe) {
      options.observe(bound, counted);
    }
    return Status();
  };
  SPYRE_TRY(walk_program(program, launch, execute));
  return counts;
}

}  // namespace spyre::exec
