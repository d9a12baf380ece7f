#include "spyre/device/exec/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/device/exec/core_chain.h"
#include "spyre/device/exec/prepared_op.h"

namespace spyre::exec {
namespace {

bool is_dynamic(const ProgramOp& op) {
  return std::any_of(op.dims.begin(), op.dims.end(),
                     [](const ProgramDim& d) { return d.symbol.has_value(); });
}

/// One run over a program: binds, runs, counts.
class Runner {
 public:
  Runner(const std::vector<std::unique_ptr<PreparedOp>>& prepared, const DeviceProgram& program,
         const VectorKernels& kernels, const Machine& machine, CardMemory& memory, const RunOptions& options)
      : prepared_(prepared),
        program_(program),
        kernels_(kernels),
        machine_(machine),
        options_(options),
        memory_(memory),
        scratchpads_(memory) {
    counts_.ops.resize(program.ops.size());
  }

  Status run(int index, const SymbolValues& symbols, int64_t instruction) {
    const ProgramOp& op = program_.ops[index];
    if (!prepared_[index]) {  // its extents are known only now
      SPYRE_ASSIGN_OR_RETURN(BoundOp bound, bind_op(op, symbols, instruction));
      const PreparedOp prepared(std::move(bound), kernels_, machine_);
      const Status status = run(index, prepared, symbols, instruction);
      chain_.run();  // before the op is gone
      return status;
    }
    return run(index, *prepared_[index], symbols, instruction);
  }

  /// Ends the run, also one that failed.
  RunCounts finish() && {
    chain_.run();
    return std::move(counts_);
  }

 private:
  Status run(int index, const PreparedOp& prepared, const SymbolValues& symbols, int64_t instruction) {
    SPYRE_TRY(check_points(prepared.bound(), options_.max_points));
    bool fast = bind_starts(program_.ops[index], symbols) &&
                prepared.find_places(starts_, memory_, scratchpads_, places_);
    if (fast && prepared.data_dependent()) {
      chain_.run();  // what it looks at may still be waiting there
      fast = prepared.ready(places_);
    }
    if (!fast && !options_.may_interpret) {
      return unsupported(fmt::format("the fast executor has no code for this execute of {}",
                                     program_.ops[index].info->name))
          .try_instead("SPYRE_EXECUTOR=fast, which leaves it to the interpreter");
    }
    if (fast) {
      run_fast(prepared);
    } else {
      chain_.run();
    }
    if (!fast || options_.observe) {
      SPYRE_ASSIGN_OR_RETURN(const BoundOp bound, bind_op(program_.ops[index], symbols, instruction));
      if (!fast) {
        SPYRE_TRY(interpret_op(bound, memory_));
      }
      if (options_.observe) {
        options_.observe(bound, prepared.counts());
      }
    }
    if (options_.paths != nullptr) {
      ++(fast ? options_.paths->fast : options_.paths->interpreted);
      if (!fast) {
        ++options_.paths->interpreted_ops[std::string(program_.ops[index].info->name)];
      }
    }
    if (options_.count) {
      counts_.ops[index].add(prepared.counts());
    }
    return Status();
  }

  /// Now, or with the ops that follow. Who observes sees each op's results before the next begins.
  void run_fast(const PreparedOp& prepared) {
    const bool can_wait = prepared.core_local() && !prepared.overwrites_inputs(places_) && !options_.observe;
    if (!can_wait || !chain_.admits(prepared, places_)) {
      chain_.run();
    }
    if (can_wait) {
      chain_.add(prepared, places_);
    } else {
      prepared.run(places_);
    }
  }

  /// False where an address is one that `bind_op` refuses.
  bool bind_starts(const ProgramOp& op, const SymbolValues& symbols) {
    for (const auto& [symbol, value] : symbols) {
      const auto slot = static_cast<size_t>(-symbol);
      if (slot >= by_symbol_.size()) {
        by_symbol_.resize(slot + 1);
      }
      by_symbol_[slot] = value;
    }
    starts_.clear();
    for (const Tensor& tensor : op.tensors) {
      const int64_t alignment = start_alignment(tensor);
      for (const CoreStart& start : tensor.start) {
        const int64_t address = start.symbolic ? by_symbol_[static_cast<size_t>(-start.value)] : start.value;
        if (address < 0 || address % alignment != 0) {
          return false;
        }
        starts_.push_back(address);
      }
    }
    return true;
  }

  const std::vector<std::unique_ptr<PreparedOp>>& prepared_;
  const DeviceProgram& program_;
  const VectorKernels& kernels_;
  const Machine& machine_;
  const RunOptions& options_;
  CardMemory& memory_;
  ScratchpadSpans scratchpads_;
  std::vector<int64_t> starts_;  // [tensor * cores + core], of the op at hand
  Places places_;                // of the op at hand
  CoreChain chain_;
  RunCounts counts_;
  std::vector<int64_t> by_symbol_;  // [-symbol]
};

}  // namespace

PreparedProgram::PreparedProgram(const DeviceProgram& program, const VectorKernels& kernels,
                                 const Machine& machine)
    : program_(&program), kernels_(&kernels), machine_(&machine) {
  for (const ProgramOp& op : program.ops) {
    ops_.push_back(is_dynamic(op) ? nullptr
                                  : std::make_unique<PreparedOp>(bind_extents_only(op), kernels, machine));
  }
}

PreparedProgram::~PreparedProgram() = default;
PreparedProgram::PreparedProgram(PreparedProgram&&) noexcept = default;
PreparedProgram& PreparedProgram::operator=(PreparedProgram&&) noexcept = default;

Result<RunCounts> PreparedProgram::execute(const LaunchValues& launch, CardMemory& memory,
                                           const RunOptions& options) const {
  Runner runner(ops_, *program_, *kernels_, *machine_, memory, options);
  const Status status =
      walk_program(*program_, launch, [&](int op, const SymbolValues& symbols, int64_t instruction) {
        return runner.run(op, symbols, instruction);
      });
  RunCounts counts = std::move(runner).finish();
  SPYRE_TRY(status);
  return counts;
}

PreparedProgram prepare(const DeviceProgram& program, const Machine& machine) {
  return PreparedProgram(program, vector_kernels().front(), machine);
}

Result<RunCounts> execute(const DeviceProgram& program, const LaunchValues& launch, CardMemory& memory,
                          const RunOptions& options) {
  return prepare(program, *options.machine).execute(launch, memory, options);
}

}  // namespace spyre::exec
