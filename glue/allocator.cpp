// PyTorch's allocator interface on top of the runtime's: device memory by token, statistics, no cache.

#include <c10/core/CachingDeviceAllocator.h>

#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/storage.h"
#include "spyre/runtime/transfer.h"

namespace spyre::glue {
namespace {

using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

void set_aggregate(StatArray& array, const Stat& stat) {
  auto& out = array[static_cast<size_t>(StatType::AGGREGATE)];
  out.current = stat.current;
  out.peak = stat.peak;
  out.allocated = stat.allocated;
  out.freed = stat.freed;
}

class SpyreAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    return allocate_bytes(current_device(), Bytes(static_cast<int64_t>(size)), "bytes");
  }

  /// Memory is freed through its context, never through a bare pointer.
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* destination, const void* source, size_t count) const override {
    const auto view_at = [&](const void* token) {
      for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
        if (auto found = card(i).allocator().find(token); found.ok()) {
          const MemoryRef memory = std::move(found).value();
          const auto offset = static_cast<const char*>(token) - static_cast<const char*>(memory->token());
          return MemoryView{memory, Bytes(offset), Bytes(static_cast<int64_t>(count))};
        }
      }
      SPYRE_CHECK(false, "PyTorch copies between memory that its tensors hold");
    };
    const MemoryView to = view_at(destination);
    const auto stream = stream_of(current_stream(static_cast<c10::DeviceIndex>(to.memory->device_index())));
    check(copy_between(stream, to, view_at(source), Blocking::kYes));
  }

  bool initialized() override { return Runtime::instance().started(); }

  /// Freed memory goes back to the card at once, so there is nothing to empty.
  void emptyCache(c10::MempoolId_t /*pool*/) override {}

  /// Queued work holds a reference to the memory it uses, so nothing has to be remembered here.
  void recordStream(const c10::DataPtr& /*ptr*/, c10::Stream /*stream*/) override {}

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const MemoryStats stats = card(resolve_index(device)).allocator().stats();
    c10::CachingDeviceAllocator::DeviceStats out;
    set_aggregate(out.allocation, stats.allocation);
    set_aggregate(out.segment, stats.segment);
    set_aggregate(out.active, stats.active);
    set_aggregate(out.inactive_split, stats.inactive_split);
    set_aggregate(out.allocated_bytes, stats.allocated_bytes);
    set_aggregate(out.reserved_bytes, stats.reserved_bytes);
    set_aggregate(out.active_bytes, stats.active_bytes);
    set_aggregate(out.inactive_split_bytes, stats.inactive_split_bytes);
    set_aggregate(out.requested_bytes, stats.requested_bytes);
    out.num_alloc_retries = stats.num_alloc_retries;
    out.num_ooms = stats.num_ooms;
    return out;
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    card(resolve_index(device)).allocator().reset_accumulated_stats();
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    card(resolve_index(device)).allocator().reset_peak_stats();
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const MemoryInfo info = card(resolve_index(device)).allocator().info();
    return {static_cast<size_t>(info.free.count()), static_cast<size_t>(info.total.count())};
  }
};

SpyreAllocator spyre_allocator;
REGISTER_ALLOCATOR(c10::kPrivateUse1, &spyre_allocator);

}  // namespace
}  // namespace spyre::glue
