#include "spyre/runtime/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "spyre/cost/copy.h"
#include "spyre/program/image.h"
#include "spyre/runtime/activity_log.h"
#include "spyre/runtime/fork.h"
#include "spyre/runtime/metrics.h"

namespace spyre {
namespace {

constexpr size_t kParameterBytes = sizeof(int64_t);

/// Of a tensor that was checked: it has memory.
int64_t address_of(const LaunchTensor& tensor) {
  SPYRE_CHECK(tensor.memory != nullptr, "a launch has no argument without memory");
  return tensor.memory->address().value();
}

void count_run(const exec::RunCounts& counts) {
  int64_t executes = 0;
  for (const exec::OpCounts& op : counts.ops) {
    executes += op.executes;
  }
  const exec::CoreCounts total = counts.total();
  count(Metric::kExecutes, executes);
  count(Metric::kHbmBytesRead, total.traffic.hbm_read);
  count(Metric::kHbmBytesWritten, total.traffic.hbm_written);
  count(Metric::kLxBytesRead, total.traffic.lx_read);
  count(Metric::kLxBytesWritten, total.traffic.lx_written);
  count(Metric::kRingBytes, total.ring_bytes);
  count(Metric::kMacs, total.macs);
  count(Metric::kVectorElements, total.vector_elements);
}

Result<int64_t> resolve_one(size_t position, const SymbolicArg& arg, std::span<const LaunchTensor> tensors) {
  if (arg.tensor_id < 0 || arg.tensor_id >= static_cast<int64_t>(tensors.size())) {
    return Error(ErrorKind::kOutOfRange, fmt::format("SymbolicArg[{}].tensor_id={} out of range [0, {})",
                                                     position, arg.tensor_id, tensors.size()));
  }
  const LaunchTensor& tensor = tensors[static_cast<size_t>(arg.tensor_id)];
  if (arg.kind == SymbolicArg::Kind::kAddress) {
    return address_of(tensor);
  }
  if (arg.dim_index < 0 || arg.dim_index >= static_cast<int64_t>(tensor.shape.size())) {
    return Error(ErrorKind::kOutOfRange, fmt::format("SymbolicArg[{}].dim_index={} out of range [0, {})",
                                                     position, arg.dim_index, tensor.shape.size()));
  }
  return arg.value >= 0 ? arg.value : tensor.shape[static_cast<size_t>(arg.dim_index)];
}

bool overlap(Bytes a, Bytes a_size, Bytes b, Bytes b_size) {
  return a < b + b_size && b < a + a_size;
}

/// Of the sticks in front of an image that hold so many parameters.
Bytes parameter_bytes(size_t parameters) {
  return Bytes(round_up(static_cast<int64_t>(parameters * kParameterBytes), kStickBytes.count()));
}

bool takes_pool(const JobPlan& plan) {
  return std::any_of(plan.steps().begin(), plan.steps().end(), [](const JobStep& step) {
    const auto* compute = std::get_if<HostCompute>(&step.what);
    return compute != nullptr && compute->parameters &&
           std::any_of(compute->parameters->begin(), compute->parameters->end(),
                       [](const ParameterSource& s) { return s.kind == ParameterSource::Kind::kPool; });
  });
}

}  // namespace

Result<std::vector<int64_t>> resolve(std::span<const SymbolicArg> args,
                                     std::span<const LaunchTensor> tensors) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < args.size(); ++i) {
    SPYRE_ASSIGN_OR_RETURN(const int64_t value, resolve_one(i, args[i], tensors));
    values.push_back(value);
  }
  return values;
}

/// One launch of one plan: the checks when it is given, the steps when its turn comes.
class Launcher {
 public:
  Launcher(JobPlanRef plan, std::vector<LaunchTensor> tensors, std::vector<SymbolicArg> symbolic, int stream)
      : plan_(std::move(plan)),
        tensors_(std::move(tensors)),
        symbolic_(std::move(symbolic)),
        stream_(stream) {}

  /// Puts the plan's constants among the caller's tensors, each in its place.
  Status add_constants() {
    const std::map<int, MemoryRef>& constants = plan_->parts_.constants;
    if (constants.empty()) return Status();
    const std::vector<int>& order = plan_->parts_.arg_order;
    const size_t pool = takes_pool(*plan_) ? 1 : 0;
    const size_t expected = pool + order.size() - constants.size();
    if (tensors_.size() != expected) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("launch: found {} arguments, allowed: {}, as the kernel {} takes",
                               tensors_.size(), expected, plan_->parts_.kernel_name))
          .note(fmt::format("its {} constants are its own", constants.size()));
    }
    for (size_t i = 0; i < order.size(); ++i) {
      if (const auto constant = constants.find(order[i]); constant != constants.end()) {
        tensors_.insert(tensors_.begin() + static_cast<std::ptrdiff_t>(pool + i),
                        LaunchTensor{constant->second, {}});
      }
    }
    return Status();
  }

  Status check() const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      SPYRE_TRY(check_tensor(i));
    }
    for (const JobStep& step : plan_->steps()) {
      if (const auto* compute = std::get_if<HostCompute>(&step.what)) {
        SPYRE_TRY(symbolic_.empty() ? check_arguments(*compute) : check_symbolic(*compute));
      } else if (const auto* move = std::get_if<Transfer>(&step.what); move != nullptr && move->tensor) {
        SPYRE_TRY(check_source(*move));
      }
    }
    return Status();
  }

  /// Says how long the card takes for the steps of this launch, and tells whoever listens.
  void spend(Stream& stream) const {
    for (size_t i = 0; i < plan_->steps().size(); ++i) {
      const JobStep& step = plan_->steps()[i];
      if (const auto* move = std::get_if<Transfer>(&step.what); move != nullptr && move->to_host) {
        const TimeSpan span = stream.spend(link_copy_time(move->size, fitted_rates()), Engine::kToHost);
        tell({.kind = Activity::Kind::kToHost, .name = "Memcpy DtoH", .span = span, .size = move->size},
             stream);
      } else if (const auto* compute = std::get_if<Compute>(&step.what);
                 compute != nullptr && plan_->parts_.times[i] != nullptr) {
        spend(*compute, i, stream);
      }
    }
  }

  Status run() {
    const std::lock_guard lock(plan_->mutex_);
    plan_->last_counts_ = {};
    plan_->last_programs_.clear();
    CoreTurn turn(plan_->card());
    turn_ = &turn;
    for (size_t i = 0; i < plan_->steps().size(); ++i) {
      Status done = std::visit([&](const auto& step) { return run(step, i); }, plan_->steps()[i].what);
      if (!done.ok()) {
        plan_->last_counts_ = {};
        Error error = done.error();
        return std::move(error).note(fmt::format("kernel {} on stream {} of device {}", plan_->step_name(i),
                                                 stream_, plan_->card().index()));
      }
    }
    return Status();
  }

 private:
  // ---- before it is queued

  Status check_tensor(size_t i) const {
    const MemoryRef& memory = tensors_[i].memory;
    if (memory == nullptr) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("launch: argument {} has no memory: it was freed, or has no elements", i))
          .note(fmt::format("kernel {}", plan_->parts_.kernel_name));
    }
    if (memory->device_index() != plan_->card().index()) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("launch: argument {} is on device {}, the kernel on device {}", i,
                               memory->device_index(), plan_->card().index()))
          .try_instead("prepare the kernel on the device of its tensors");
    }
    return memory->check_range(Bytes(0), memory->requested());
  }

  Status check_arguments(const HostCompute& compute) const {
    if (compute.input) {
      return Error(
          ErrorKind::kUnsupported,
          fmt::format("launch: the kernel {} computes on the host from a buffer; what it computes is not "
                      "published",
                      plan_->parts_.kernel_name));
    }
    const int64_t stated = compute.input_shape.empty() ? 0 : compute.input_shape[0];
    const auto given = static_cast<int64_t>(tensors_.size());
    if (stated != 0 && stated != given) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("launch: found {} arguments, allowed: {}, as the kernel {} takes", given,
                               stated, plan_->parts_.kernel_name));
    }
    if (!compute.parameters) {
      const Bytes room = plan_->parts_.code.buffers[static_cast<size_t>(compute.buffer)];
      return given * static_cast<int64_t>(kParameterBytes) <= room.count()
                 ? Status()
                 : Status(
                       Error(ErrorKind::kInvalidArgument,
                             fmt::format(
                                 "launch: found {} arguments, allowed: {}, which fit the buffer of {} bytes",
                                 given, room.count() / static_cast<int64_t>(kParameterBytes), room.count())));
    }
    for (const ParameterSource& source : *compute.parameters) {
      SPYRE_TRY(value_of(source));
    }
    return Status();
  }

  /// As many values as the kernel has parameters; extents within what it was compiled for.
  Status check_symbolic(const HostCompute& compute) const {
    SPYRE_ASSIGN_OR_RETURN(const std::vector<int64_t> values, resolve(symbolic_, tensors_));
    const int64_t room = plan_->parts_.code.buffers[static_cast<size_t>(compute.buffer)].count();
    const auto allowed = compute.parameters ? static_cast<int64_t>(compute.parameters->size())
                                            : room / static_cast<int64_t>(kParameterBytes);
    const auto given = static_cast<int64_t>(values.size());
    if (compute.parameters ? given != allowed : given > allowed) {
      return Error(
          ErrorKind::kInvalidArgument,
          fmt::format("launch: found {} symbolic arguments, allowed: {}{}, the parameters of the kernel {}",
                      given, compute.parameters ? "" : "at most ", allowed, plan_->parts_.kernel_name));
    }
    for (size_t i = 0; compute.parameters && i < values.size(); ++i) {
      const ParameterSource& source = (*compute.parameters)[i];
      const bool address = symbolic_[i].kind == SymbolicArg::Kind::kAddress;
      if (address != source.is_address()) {
        return Error(ErrorKind::kInvalidArgument,
                     fmt::format("launch: symbolic argument {} is {}, the kernel {} takes {} there", i,
                                 address ? "an address" : "an extent", plan_->parts_.kernel_name,
                                 address ? "an extent" : "an address"));
      }
      if (!address) SPYRE_TRY(check_extent(source, values[i]));
    }
    return Status();
  }

  /// What a D2H reads lies inside its tensor.
  Status check_source(const Transfer& move) const {
    const auto position = static_cast<size_t>(*move.tensor);
    if (position >= tensors_.size() || tensors_[position].memory == nullptr) {
      return Error(
          ErrorKind::kOutOfRange,
          fmt::format("D2H tensor-segment lookup out of range: the kernel {} reads argument {}, found {} "
                      "arguments{}",
                      plan_->parts_.kernel_name, position, tensors_.size(),
                      position < tensors_.size() ? ", and that one has no memory" : ""));
    }
    const int64_t size = tensors_[position].memory->requested().count();
    if (move.offset.count() > size || move.size.count() > size - move.offset.count()) {
      return Error(
          ErrorKind::kOutOfRange,
          fmt::format("D2H transfer out of bounds: found {} bytes at {}, allowed: inside the {} bytes of "
                      "argument {}",
                      move.size.count(), move.offset.count(), size, position));
    }
    return Status();
  }

  /// The launch tensor behind an arg_index: tensors come in ascending arg_index, after the pool.
  Result<const LaunchTensor*> tensor_of(int64_t arg_index) const {
    int64_t position = arg_index;
    const std::vector<int>& order = plan_->parts_.arg_order;
    if (!order.empty()) {
      position = std::lower_bound(order.begin(), order.end(), arg_index) - order.begin();
    }
    position += takes_pool(*plan_) ? 1 : 0;
    if (position >= static_cast<int64_t>(tensors_.size())) {
      return Error(
          ErrorKind::kInvalidArgument,
          fmt::format("launch: found {} arguments, allowed: at least {}: the kernel {} uses argument {}",
                      tensors_.size(), position + 1, plan_->parts_.kernel_name, arg_index));
    }
    return &tensors_[static_cast<size_t>(position)];
  }

  Result<int64_t> value_of(const ParameterSource& source) const {
    if (source.kind == ParameterSource::Kind::kPool) {
      if (tensors_.empty()) {
        return Error(ErrorKind::kInvalidArgument, "launch: the kernel takes its pool as first argument");
      }
      return address_of(tensors_[0]);
    }
    SPYRE_ASSIGN_OR_RETURN(const LaunchTensor* const tensor, tensor_of(source.arg_index));
    if (source.is_address()) {
      return address_of(*tensor);
    }
    return extent_of(source, *tensor);
  }

  static Result<int64_t> extent_of(const ParameterSource& source, const LaunchTensor& tensor) {
    if (source.dim_index >= static_cast<int64_t>(tensor.shape.size())) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("launch: argument {} has {} dimensions, the kernel takes {} from dimension {}",
                               source.arg_index, tensor.shape.size(), source.symbol, source.dim_index));
    }
    const int64_t extent = tensor.shape[static_cast<size_t>(source.dim_index)];
    SPYRE_TRY(check_extent(source, extent));
    return extent;
  }

  static Status check_extent(const ParameterSource& source, int64_t extent) {
    if (extent < 1 || extent > source.max_value || extent % source.granularity != 0) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format(
                       "launch: {}, dimension {} of argument {}: found {}, allowed: multiples of {} up to {}",
                       source.symbol, source.dim_index, source.arg_index, extent, source.granularity,
                       source.max_value))
          .try_instead("a kernel compiled for this size");
    }
    return Status();
  }

  // ---- when it was queued

  void tell(Activity activity, const Stream& stream) const {
    if (ActivityLog::instance().listens()) {
      activity.card = stream.device_index();
      activity.stream = stream.id();
      ActivityLog::instance().add(std::move(activity));
    }
  }

  /// The thread sets up the launch, then the cores may begin.
  void spend(const Compute& compute, size_t step, Stream& stream) const {
    KernelTimes& times = *plan_->parts_.times[step];
    std::vector<int64_t> parameters = parameters_of(times.program()->program(), compute);
    const KernelTimes::Time time = times.at(parameters);
    thread_spent(time.launch);
    const TimeSpan span = stream.spend(time.kernel, Engine::kCores);
    if (ActivityLog::instance().listens()) {
      auto run = std::make_shared<ProgramRun>(ProgramRun{times.program(), std::move(parameters), time.launch,
                                                         plan_->parts_.facts, LaunchFacts::current()});
      tell({.kind = Activity::Kind::kKernel,
            .name = plan_->step_name(step),
            .span = span,
            .size = {},
            .run = std::move(run)},
           stream);
    }
  }

  /// What the program will read in front of its image (read_parameters), if this launch sends it; else zeros.
  std::vector<int64_t> parameters_of(const program::DeviceProgram& program, const Compute& compute) const {
    std::vector<int64_t> parameters(program.parameters.size());
    const Bytes begin = compute.entry - parameter_bytes(parameters.size());
    for (const JobStep& step : plan_->steps()) {
      const auto* const move = std::get_if<Transfer>(&step.what);
      if (move == nullptr || move->to_host || move->offset > begin || move->offset + move->size <= begin) {
        continue;
      }
      const auto first = static_cast<size_t>((begin - move->offset).count()) / kParameterBytes;
      const std::vector<int64_t> sent = values_in(move->buffer);
      for (size_t i = 0; i < parameters.size() && first + i < sent.size(); ++i) {
        parameters[i] = sent[first + i];
      }
    }
    return parameters;
  }

  std::vector<int64_t> values_in(int buffer) const {
    for (const JobStep& step : plan_->steps()) {
      const auto* const compute = std::get_if<HostCompute>(&step.what);
      if (compute != nullptr && compute->buffer == buffer) {
        Result<std::vector<int64_t>> values = values_of(*compute);
        return values.ok() ? std::move(values).value() : std::vector<int64_t>();
      }
    }
    return {};
  }

  // ---- in its turn

  std::span<std::byte> buffer(int index) const {
    return plan_->parts_.buffers[static_cast<size_t>(index)].bytes();
  }

  Result<std::vector<int64_t>> values_of(const HostCompute& compute) const {
    if (!symbolic_.empty()) {
      return resolve(symbolic_, tensors_);
    }
    std::vector<int64_t> values;
    if (compute.parameters) {
      for (const ParameterSource& source : *compute.parameters) {
        SPYRE_ASSIGN_OR_RETURN(const int64_t value, value_of(source));
        values.push_back(value);
      }
    } else {
      for (const LaunchTensor& tensor : tensors_) {
        values.push_back(address_of(tensor));
      }
    }
    return values;
  }

  Status run(const HostCompute& compute, size_t /*step*/) {
    SPYRE_ASSIGN_OR_RETURN(const std::vector<int64_t> values, values_of(compute));
    std::memcpy(buffer(compute.buffer).data(), values.data(), values.size() * kParameterBytes);
    return Status();
  }

  Status run(const Transfer& move, size_t /*step*/) {
    const MemoryRef& memory =
        move.tensor ? tensors_[static_cast<size_t>(*move.tensor)].memory : plan_->parts_.memory;
    SPYRE_ASSIGN_OR_RETURN(const Memory::Access access, memory->open(move.offset, move.size));
    const std::span<std::byte> host = buffer(move.buffer);
    const std::span<std::byte> device = access.bytes();
    if (move.to_host) {
      std::memcpy(host.data(), device.data(), device.size());
    } else {
      std::memcpy(device.data(), host.data(), device.size());
      forget_overwritten(move);
    }
    count(move.to_host ? Metric::kTransfersToHost : Metric::kTransfersToDevice);
    count(move.to_host ? Metric::kBytesToHost : Metric::kBytesToDevice, move.size.count());
    return Status();
  }

  /// A transfer into an image makes it another program.
  void forget_overwritten(const Transfer& move) {
    for (size_t i = 0; i < plan_->steps().size(); ++i) {
      const auto* compute = std::get_if<Compute>(&plan_->steps()[i].what);
      if (compute != nullptr && overlap(compute->entry, plan_->decoded_size_[i], move.offset, move.size)) {
        plan_->decoded_[i] = nullptr;
      }
    }
  }

  Status run(const Compute& compute, size_t step) {
    const Bytes region = plan_->parts_.code.allocation;
    SPYRE_ASSIGN_OR_RETURN(const Memory::Access access, plan_->parts_.memory->open(Bytes(0), region));
    SPYRE_TRY(decode(compute, step, access.bytes()));
    const LoadedProgram& program = *plan_->decoded_[step];
    SPYRE_ASSIGN_OR_RETURN(std::vector<int64_t> parameters,
                           read_parameters(program.program(), compute, access.bytes()));
    std::vector<Memory::Access> open;
    open.reserve(tensors_.size());
    std::vector<MappedBytes> mapped;
    SPYRE_TRY(map_tensors(program.program(), open, mapped));
    count(Metric::kLaunches);
    const auto counts = plan_->card().run(
        *turn_, program, std::move(parameters), std::move(mapped),
        {.non_terminal = compute.non_terminal, .last = is_last(step), .kernel = plan_->parts_.kernel_name});
    if (!counts.ok()) {
      return counts.error();
    }
    plan_->last_programs_.push_back(plan_->decoded_[step]);
    const std::vector<exec::OpCounts>& ops = counts.value().ops;
    if (!ops.empty()) {
      count_run(counts.value());
    }
    plan_->last_counts_.ops.insert(plan_->last_counts_.ops.end(), ops.begin(), ops.end());
    return Status();
  }

  bool is_last(size_t step) const {
    return std::none_of(plan_->steps().begin() + static_cast<std::ptrdiff_t>(step) + 1, plan_->steps().end(),
                        [](const JobStep& s) { return std::holds_alternative<Compute>(s.what); });
  }

  Status decode(const Compute& compute, size_t step, std::span<const std::byte> region) {
    if (plan_->decoded_[step] != nullptr) {
      return Status();
    }
    const auto entry = static_cast<size_t>(compute.entry.count());
    auto loaded = plan_->card().programs().get(region.subspan(entry));
    if (!loaded.ok()) {
      const uint64_t address =
          static_cast<uint64_t>((plan_->parts_.memory->address() + compute.entry).value());
      Error fault(ErrorKind::kDeviceFault, fmt::format("core 0, address {:#x}, instruction fetch: {}",
                                                       address, loaded.error().message));
      fault.notes = loaded.error().notes;
      return fault;
    }
    plan_->decoded_[step] = std::move(loaded).value();
    plan_->decoded_size_[step] = Bytes(program::image_bytes(region.subspan(entry)).value());
    return Status();
  }

  /// The program's prologue: one int64 per parameter, in the sticks just in front of the image.
  Result<std::vector<int64_t>> read_parameters(const program::DeviceProgram& program, const Compute& compute,
                                               std::span<const std::byte> region) const {
    std::vector<int64_t> values(program.parameters.size());
    const auto size = static_cast<size_t>(parameter_bytes(values.size()).count());
    const auto entry = static_cast<size_t>(compute.entry.count());
    if (size > entry) {
      return Error(
          ErrorKind::kDeviceFault,
          fmt::format("core 0, instruction fetch: found {} bytes in front of the program, allowed: {}, "
                      "which hold its {} parameters",
                      entry, size, values.size()));
    }
    if (!values.empty())
      std::memcpy(values.data(), region.data() + entry - size, values.size() * kParameterBytes);
    return values;
  }

  /// Opens the tensors' memory and says where the program finds it: where it lies, or, for a program whose
  /// addresses are baked in, tensor i at the start of segment i.
  Status map_tensors(const program::DeviceProgram& program, std::vector<Memory::Access>& open,
                     std::vector<MappedBytes>& mapped) const {
    const bool baked = program.parameters.empty();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const MemoryRef& memory = tensors_[i].memory;
      SPYRE_ASSIGN_OR_RETURN(Memory::Access access, memory->open(Bytes(0), memory->requested()));
      const int64_t segment = plan_->card().machine().segment_bytes.count();
      const DeviceAddress at = baked ? DeviceAddress(static_cast<int64_t>(i) * segment) : memory->address();
      mapped.push_back({at, access.bytes()});
      open.push_back(std::move(access));
    }
    return Status();
  }

  JobPlanRef plan_;
  std::vector<LaunchTensor> tensors_;
  std::vector<SymbolicArg> symbolic_;
  int stream_;
  CoreTurn* turn_ = nullptr;  // while it runs
};

Status launch(const JobPlanRef& plan, std::vector<LaunchTensor> tensors, const StreamRef& stream,
              Blocking blocking, std::vector<SymbolicArg> symbolic) {
  SPYRE_TRY(check_process());
  if (stream->device_index() != plan->card().index()) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("launch: stream {} is of device {}, the kernel on device {}", stream->id(),
                             stream->device_index(), plan->card().index()));
  }
  const CallScope call("spyreLaunchKernel");
  auto launcher = std::make_shared<Launcher>(plan, std::move(tensors), std::move(symbolic), stream->id());
  SPYRE_TRY(launcher->add_constants());
  SPYRE_TRY(launcher->check());
  SPYRE_TRY(plan->block_until_loaded(stream));
  const bool timed = plan->card().clock().runs();
  if (blocking == Blocking::kNo) {
    SPYRE_TRY(stream->enqueue([launcher] { return launcher->run(); }));
    if (timed) {
      launcher->spend(*stream);
    }
    return {};
  }
  std::exception_ptr bug;
  const Status done = stream->run_now_or_enqueue([&]() -> Status {
    try {
      return launcher->run();
    } catch (const InternalError& thrown) {
      bug = std::current_exception();
      return Error(ErrorKind::kDeviceFault, thrown.what());
    }
  });
  if (bug != nullptr) {
    std::rethrow_exception(bug);
  }
  if (timed && done.ok()) {
    launcher->spend(*stream);
    thread_saw(stream->device_time());
  }
  return done;
}

}  // namespace spyre
