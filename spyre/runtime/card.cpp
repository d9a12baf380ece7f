#include "spyre/runtime/card.h"

#include <fmt/format.h>

#include "spyre/runtime/fork.h"
#include "spyre/runtime/metrics.h"

namespace spyre {

Card::Card(int index, std::shared_ptr<Device> device, CardOptions options)
    : index_(index),
      device_(std::move(device)),
      allocator_(std::make_shared<Allocator>(index, device_, options.memory)),
      streams_(index, options.host_compute_streams) {}

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

Status Card::synchronize() {
  count(Metric::kDeviceSyncs);
  return streams_.synchronize();
}

void Card::close() {
  closed_.store(true, std::memory_order_release);
  streams_.close();
}

}  // namespace spyre
