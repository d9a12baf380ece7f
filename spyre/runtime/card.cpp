#include "spyre/runtime/card.h"

#include <fmt/format.h>

#include "spyre/runtime/activity_log.h"
#include "spyre/runtime/fork.h"
#include "spyre/runtime/metrics.h"

namespace spyre {

Card::Card(int index, std::shared_ptr<Device> device, CardOptions options,
           std::shared_ptr<ProgramCache> programs)
    : index_(index),
      device_(std::move(device)),
      status_(claim_status(index)),
      allocator_(std::make_shared<Allocator>(index, device_, options.memory, status_)),
      programs_(programs != nullptr ? std::move(programs)
                                    : std::make_shared<ProgramCache>(device_->machine())),
      streams_(index, options.host_compute_streams, std::make_shared<DeviceClock>(options.device_time),
               status_),
      wipes_lx_(options.wipes_lx),
      keeps_non_terminal_(options.keeps_non_terminal),
      execution_(options.execution) {}

Card::~Card() {
  if (!forked_after_start()) {
    close();
    release_status(status_);
  }
}

Result<MemoryRef> Card::allocate(Bytes size, AllocationInfo info) {
  if (closed_.load(std::memory_order_acquire)) {
    return Error(ErrorKind::kShutdown,
                 fmt::format("cannot allocate on device {}: the runtime was shut down", index_));
  }
  const CallScope call("spyreMalloc");
  return allocator_->allocate(size, std::move(info));
}

void CoreTurn::finish() {
  if (!cores_.owns_lock()) {
    return;
  }
  if (card_.wipes_lx_) {
    card_.device_->clear_lx();
  }
  if (checker_) {
    checker_->forget_lx();  // on a card of one's own too: another launch may use them now
  }
  cores_.unlock();
}

Result<exec::RunCounts> Card::run(CoreTurn& turn, const LoadedProgram& program,
                                  std::vector<int64_t> parameters, std::vector<MappedBytes> memory,
                                  ProgramEnd end) {
  if (!turn.cores_.owns_lock()) {
    turn.cores_ = std::unique_lock(cores_);
  }
  if (execution_.check && !turn.checker_) {
    turn.checker_.emplace(machine());
  }
  exec::PathCounts paths;
  ExecuteRequest request{.program = &program,
                         .values = {.parameters = std::move(parameters), .pool_base = 0},
                         .memory = std::move(memory),
                         .options = execution_,
                         .checker = turn.checker_ ? &*turn.checker_ : nullptr,
                         .last = end.last,
                         .paths = &paths};
  std::optional<Memory::Access> pool;
  if (const Bytes needed(program.program().pool_bytes); needed > Bytes(0)) {
    if (pool_ == nullptr || pool_->requested() < needed) {
      pool_ = nullptr;  // first, so that the new one may take its place
      SPYRE_ASSIGN_OR_RETURN(
          pool_, allocate(needed, {.kind = MemoryKind::kProgram, .description = "pool of programs"}));
    }
    SPYRE_ASSIGN_OR_RETURN(Memory::Access access, pool_->open(Bytes(0), needed));
    request.values.pool_base = pool_->address().value();
    request.memory.push_back({pool_->address(), access.bytes()});
    pool.emplace(std::move(access));
  }
  status_.begin(end.kernel);
  Result<exec::RunCounts> counts = device_->execute(request);
  status_.end();
  pool.reset();
  for (const auto& [op, executes] : paths.interpreted_ops) {
    count_interpreted(op, executes);
  }
  if (!end.non_terminal || !keeps_non_terminal_) {
    turn.finish();
  }
  return counts;
}

void Card::set_execution(ExecuteOptions options) {
  const std::lock_guard cores(cores_);
  execution_ = options;
}

Status Card::reset() {
  SPYRE_TRY(streams_.reset());
  const std::lock_guard cores(cores_);
  device_->clear_lx();
  return {};
}

Status Card::synchronize() {
  count(Metric::kDeviceSyncs);
  const CallScope call("spyreDeviceSynchronize");
  return streams_.synchronize();
}

void Card::close() {
  closed_.store(true, std::memory_order_release);
  streams_.close();
}

}  // namespace spyre
