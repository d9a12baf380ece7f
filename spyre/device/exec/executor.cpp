#include "spyre/device/exec/executor.h"

#include <algorithm>
#include <cstring>

#include "spyre/device/exec/fast_op.h"

namespace spyre::exec {
namespace {

/// The part of a copy's box that both tensors have in memory.
Box clipped(const DeviceOp& op, Box box) {
  for (const Tensor& tensor : op.tensors) {
    for (const TensorDim& dim : tensor.dims) {
      if (tensor.residence == Residence::kHbm && dim.stride != 0 && !dim.indexed) {
        box.upper[dim.dim] =
            std::max(box.lower[dim.dim], std::min(box.upper[dim.dim], dim.extent * dim.per_stick));
      }
    }
  }
  return box;
}

std::unique_ptr<FastKernel> plan(const FastShape& shape) {
  switch (shape.op().info->family) {
    case OpFamily::kPointwise:
      return plan_pointwise(shape);
    case OpFamily::kReduction:
      return plan_reduction(shape);
    case OpFamily::kMatmul:
      return plan_matmul(shape);
    case OpFamily::kCopy:
      return plan_copy(shape);
    default:
      return nullptr;
  }
}

bool overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

/// What a run keeps between executes: spans of scratchpads, scratch vectors.
struct RunState {
  explicit RunState(CardMemory& card) : memory(card) {}

  CardMemory& memory;
  std::vector<std::span<std::byte>> lx;  // [core id], empty until asked for
  std::vector<int64_t> starts;           // [tensor * cores + core]
  Places places;
  std::vector<std::vector<std::byte>> copies;  // of inputs that an output would overwrite

  std::span<std::byte> lx_of(int core) {
    if (core >= static_cast<int>(lx.size())) {
      lx.resize(core + 1);
    }
    if (lx[core].empty()) {
      Result<std::span<std::byte>> found = memory.lx_span(core);
      if (found.ok()) {
        lx[core] = found.value();
      }
    }
    return lx[core];
  }
};

class PreparedOp {
 public:
  /// Takes extents from `shape`, which has no start addresses.
  PreparedOp(BoundOp shape, const VectorKernels& kernels, const Machine& machine)
      : bound_(std::move(shape)), counts_(count_execute(bound_, machine)) {
    shape_.bound = &bound_;
    shape_.vectors = &kernels;
    const bool copies = bound_.op->info->family == OpFamily::kCopy;
    for (const Box& box : bound_.boxes) {
      shape_.boxes.push_back(copies ? clipped(*bound_.op, box) : box);
    }
    for (const Tensor& tensor : bound_.tensors) {
      shape_.geometry.push_back(geometry_of(tensor, shape_.dims()));
    }
    find_reach();
    if (usable()) {
      kernel_ = plan(shape_);
    }
  }

  const BoundOp& bound() const { return bound_; }
  const OpCounts& counts() const { return counts_; }

  /// False: this launch needs the interpreter.
  bool run(RunState& state) const {
    if (!kernel_ || !find_places(state)) {
      return false;
    }
    kernel_->run(state.places);
    state.copies.clear();
    return true;
  }

 private:
  /// Slices of different cores must be different ones, and each core must have a scratchpad of its own.
  bool usable() const {
    const DeviceOp& op = *bound_.op;
    for (size_t a = 0; a < op.cores.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (op.cores[a].core == op.cores[b].core || op.cores[a].slice == op.cores[b].slice) {
          return false;
        }
      }
    }
    return std::all_of(shape_.geometry.begin(), shape_.geometry.end(),
                       [](const Geometry& g) { return g.plain; });
  }

  void find_reach() {
    Coordinate all{};
    for (const Box& box : shape_.boxes) {
      for (int d = 0; d < shape_.dims(); ++d) {
        all[d] = std::max(all[d], box.upper[d]);
      }
    }
    for (const Geometry& g : shape_.geometry) {
      reach_.push_back(g.reach(all, shape_.dims()));
      for (const Box& box : shape_.boxes) {
        Coordinate extent{};
        for (int d = 0; d < shape_.dims(); ++d) {
          extent[d] = box.extent(d);
        }
        core_reach_.push_back(g.reach(extent, shape_.dims()));
        core_offset_.push_back(g.offset(box.lower, shape_.dims()));
      }
    }
  }

  bool find_places(RunState& state) const {
    const auto tensors = static_cast<int>(shape_.geometry.size());
    Places& places = state.places;
    places.cores = shape_.cores();
    places.origin.assign(tensors, nullptr);
    places.start.assign(static_cast<size_t>(tensors) * places.cores, nullptr);
    for (int t = 0; t < tensors; ++t) {
      if (!(shape_.geometry[t].residence == Residence::kHbm ? find_hbm(t, state) : find_lx(t, state))) {
        return false;
      }
    }
    for (const int input : bound_.op->inputs) {
      keep_input_readable(input, state);
    }
    return true;
  }

  bool find_hbm(int t, RunState& state) const {
    if (reach_[t] == 0) {
      return true;
    }
    Places& places = state.places;
    int64_t origin = 0;
    bool known = false;
    for (int c = 0; c < places.cores; ++c) {
      const int at = t * places.cores + c;
      if (core_reach_[at] == 0) {
        continue;
      }
      const int64_t implied = state.starts[at] - core_offset_[at];
      if (known && implied != origin) {
        return false;
      }
      origin = implied;
      known = true;
    }
    if (origin < 0) {
      return false;
    }
    Result<std::span<std::byte>> bytes = state.memory.hbm_span(static_cast<uint64_t>(origin), reach_[t]);
    if (!bytes.ok()) {
      return false;
    }
    places.origin[t] = bytes.value().data();
    for (int c = 0; c < places.cores; ++c) {
      places.start[t * places.cores + c] = places.origin[t] + core_offset_[t * places.cores + c];
    }
    return true;
  }

  bool find_lx(int t, RunState& state) const {
    Places& places = state.places;
    for (int c = 0; c < places.cores; ++c) {
      const int at = t * places.cores + c;
      if (core_reach_[at] == 0) {
        continue;
      }
      const std::span<std::byte> bytes = state.lx_of(bound_.op->cores[c].core);
      const int64_t start = state.starts[at];
      if (start < 0 || start + core_reach_[at] > static_cast<int64_t>(bytes.size())) {
        return false;
      }
      places.start[at] = bytes.data() + start;
    }
    return true;
  }

  /// Moves an input aside where results would overwrite what is still to be read.
  void keep_input_readable(int t, RunState& state) const {
    const int out = bound_.op->output;
    const Geometry &from = shape_.geometry[t], &to = shape_.geometry[out];
    if (from.residence != to.residence) {
      return;
    }
    Places& places = state.places;
    const bool may_coincide = kernel_->elementwise() && from.same_places(to);
    if (from.residence == Residence::kHbm) {
      if (reach_[t] == 0 || !overlap(places.origin[t], reach_[t], places.origin[out], reach_[out]) ||
          (may_coincide && places.origin[t] == places.origin[out])) {
        return;
      }
      std::byte* copy = keep(places.origin[t], reach_[t], state);
      for (int c = 0; c < places.cores; ++c) {
        places.start[t * places.cores + c] = copy + core_offset_[t * places.cores + c];
      }
      places.origin[t] = copy;
      return;
    }
    for (int c = 0; c < places.cores; ++c) {
      std::byte*& in = places.start[t * places.cores + c];
      const std::byte* result = places.at(out, c);
      const int64_t bytes = core_reach_[t * places.cores + c];
      if (bytes != 0 && overlap(in, bytes, result, core_reach_[out * places.cores + c]) &&
          !(may_coincide && in == result)) {
        in = keep(in, bytes, state);
      }
    }
  }

  static std::byte* keep(const std::byte* bytes, int64_t size, RunState& state) {
    return state.copies.emplace_back(bytes, bytes + size).data();
  }

  BoundOp bound_;
  OpCounts counts_;
  FastShape shape_;
  std::vector<int64_t> reach_;                     // [tensor]: bytes of all cores together
  std::vector<int64_t> core_reach_, core_offset_;  // [tensor * cores + core]
  std::unique_ptr<FastKernel> kernel_;
};

namespace {

bool is_dynamic(const DeviceOp& op) {
  return std::any_of(op.dims.begin(), op.dims.end(),
                     [](const IterationDim& d) { return d.symbol.has_value(); });
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
        state_(memory) {
    counts_.ops.resize(program.ops.size());
  }

  Status run(int index, const SymbolValues& symbols, int64_t instruction) {
    const DeviceOp& op = program_.ops[index];
    if (!prepared_[index]) {  // its extents are known only now
      SPYRE_ASSIGN_OR_RETURN(BoundOp bound, bind_op(op, symbols, instruction));
      const PreparedOp prepared(std::move(bound), kernels_, machine_);
      return run(index, prepared, symbols, instruction);
    }
    return run(index, *prepared_[index], symbols, instruction);
  }

  RunCounts counts() && { return std::move(counts_); }

 private:
  Status run(int index, const PreparedOp& prepared, const SymbolValues& symbols, int64_t instruction) {
    SPYRE_TRY(check_points(prepared.bound(), options_.max_points));
    const bool fast = bind_starts(program_.ops[index], symbols) && prepared.run(state_);
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
    }
    if (options_.count) {
      counts_.ops[index].add(prepared.counts());
    }
    return Status();
  }

  /// False where an address is one that `bind_op` refuses.
  bool bind_starts(const DeviceOp& op, const SymbolValues& symbols) {
    for (const auto& [symbol, value] : symbols) {
      const auto slot = static_cast<size_t>(-symbol);
      if (slot >= by_symbol_.size()) {
        by_symbol_.resize(slot + 1);
      }
      by_symbol_[slot] = value;
    }
    state_.starts.clear();
    for (const Tensor& tensor : op.tensors) {
      const int64_t alignment = start_alignment(tensor);
      for (const CoreStart& start : tensor.start) {
        const int64_t address = start.symbolic ? by_symbol_[static_cast<size_t>(-start.value)] : start.value;
        if (address < 0 || address % alignment != 0) {
          return false;
        }
        state_.starts.push_back(address);
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
  RunState state_;
  RunCounts counts_;
  std::vector<int64_t> by_symbol_;  // [-symbol]
};

}  // namespace

PreparedProgram::PreparedProgram(const DeviceProgram& program, const VectorKernels& kernels,
                                 const Machine& machine)
    : program_(&program), kernels_(&kernels), machine_(&machine) {
  for (const DeviceOp& op : program.ops) {
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
  SPYRE_TRY(walk_program(*program_, launch, [&](int op, const SymbolValues& symbols, int64_t instruction) {
    return runner.run(op, symbols, instruction);
  }));
  return std::move(runner).counts();
}

PreparedProgram prepare(const DeviceProgram& program, const Machine& machine) {
  return PreparedProgram(program, vector_kernels().front(), machine);
}

Result<RunCounts> execute(const DeviceProgram& program, const LaunchValues& launch, CardMemory& memory,
                          const RunOptions& options) {
  return prepare(program, *options.machine).execute(launch, memory, options);
}

}  // namespace spyre::exec
