#include "glue/pinned_memory.h"

#include <ATen/core/CachingHostAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "spyre/base/units.h"

namespace spyre::glue {
namespace {

/// No cache: freed memory goes back to the system at once. Queued copies hold the tensors they use, so no event has to be
/// remembered for a block.
class PinnedAllocator final : public at::HostAllocator {
 public:
  static PinnedAllocator& instance() {
    static auto* allocator = new PinnedAllocator;  // Never destroyed: tensors may be freed at exit.
    return *allocator;
  }

  c10::DataPtr allocate(size_t size) override {
    if (size == 0) {
      return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    }
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const auto rounded =
        static_cast<size_t>(round_up(static_cast<int64_t>(size), static_cast<int64_t>(page)));
    void* data = std::aligned_alloc(page, rounded);
    TORCH_CHECK_WITH(OutOfMemoryError, data != nullptr, "cannot allocate ", size,
                     " bytes of pinned host memory");
    // A refusal (the limit of locked memory is often small) costs nothing here: no hardware reads these pages.
    (void)::mlock(data, rounded);
    const std::lock_guard lock(mutex_);
    blocks_[reinterpret_cast<uintptr_t>(data)] = rounded;
    for_counts([](c10::CachingAllocator::Stat& stat) { stat.increase(1); });
    for_bytes([&](c10::CachingAllocator::Stat& stat) { stat.increase(rounded); });
    ++stats_.num_host_alloc;
    return {data, data, &release, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t count) const override { std::memcpy(to, from, count); }

  bool record_event(void* data, void* /*context*/, c10::Stream /*stream*/) override { return contains(data); }
  void empty_cache() override {}

  at::HostStats get_stats() override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    const std::lock_guard lock(mutex_);
    for_counts([](c10::CachingAllocator::Stat& stat) { stat.reset_accumulated(); });
    for_bytes([](c10::CachingAllocator::Stat& stat) { stat.reset_accumulated(); });
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }
  void reset_peak_stats() override {
    const std::lock_guard lock(mutex_);
    for_counts([](c10::CachingAllocator::Stat& stat) { stat.reset_peak(); });
    for_bytes([](c10::CachingAllocator::Stat& stat) { stat.reset_peak(); });
  }

  bool contains(const void* data) const {
    const auto address = reinterpret_cast<uintptr_t>(data);
    const std::lock_guard lock(mutex_);
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin()) {
      return false;
    }
    --block;
    return address < block->first + block->second;
  }

 private:
  static void release(void* data) {
    if (data == nullptr) {
      return;
    }
    PinnedAllocator& self = instance();
    {
      const std::lock_guard lock(self.mutex_);
      const auto block = self.blocks_.find(reinterpret_cast<uintptr_t>(data));
      (void)::munlock(data, block->second);
      self.for_counts([](c10::CachingAllocator::Stat& stat) { stat.decrease(1); });
      self.for_bytes([&](c10::CachingAllocator::Stat& stat) { stat.decrease(block->second); });
      ++self.stats_.num_host_free;
      self.blocks_.erase(block);
    }
    std::free(data);
  }

  // Without a cache, what is allocated is what is in use.
  template <typename Change>
  void for_counts(const Change& change) {
    change(stats_.active_requests);
    change(stats_.allocations);
  }
  template <typename Change>
  void for_bytes(const Change& change) {
    change(stats_.active_bytes);
    change(stats_.allocated_bytes);
  }

  mutable std::mutex mutex_;            // guards the members below
  std::map<uintptr_t, size_t> blocks_;  // start -> size
  at::HostStats stats_;
};

/// What `torch.accelerator` asks for statistics and to empty the cache.
const bool pinned_memory_registered = [] {
  at::setHostAllocator(c10::kPrivateUse1, &PinnedAllocator::instance());
  return true;
}();

}  // namespace

c10::Allocator* pinned_allocator() {
  return &PinnedAllocator::instance();
}
bool is_pinned(const void* data) {
  return PinnedAllocator::instance().contains(data);
}

}  // namespace spyre::glue
