#include "spyre/runtime/card.h"

#include <fmt/format.h>

#include "spyre/runtime/fork.h"
#include "spyre/runtime/metrics.h"

namespace spyre {

Card::Card(int index, std::shared_ptr<Device> device, CardOptions options,
           std::shared_ptr<ProgramCache> programs)
    : index_(index),
      device_(std::move(device)),
      allocator_(std::make_shared<Allocator>(index, device_, options.memory)),
      programs_(programs != nullptr ? std::move(programs)
                                    : std::make_shared<ProgramCache>(device_->machine())),
      streams_(index, options.host_compute_streams),
      execution_(options.execution) {}

Card::~Card() {
  if (!forked_after_start()) {
    close();
  }
}

Result<MemoryRef> Card::allocate(Bytes size, AllocationInfo info) {
  if (closed_.load(std::memory_order_acquire)) {
    return Error(ErrorKind::kShutdown,
                 fmt::format("cannot allocate on device {}: the runtime was shut down", index_));
  }
  return allocator_->allocate(size, std::move(info));
}

Result<exec::RunCounts> Card::run(const LoadedProgram& program, std::vector<int64_t> parameters,
                                  std::vector<MappedBytes> memory) {
  const std::lock_guard cores(cores_);
  ExecuteRequest request{.program = &program,
                         .values = {.parameters = std::move(parameters), .pool_base = 0},
                         .memory = std::move(memory),
                         .options = execution_};
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
  return device_->execute(request);
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
  return streams_.synchronize();
}

void Card::close() {
  closed_.store(true, std::memory_order_release);
  streams_.close();
}

}  // namespace spyre
