#include "glue/pinned_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "spyre/base/units.h"

namespace spyre::glue {
namespace {

class PinnedAllocator final : public c10::Allocator {
 public:
  static PinnedAllocator& instance() {
    static auto* allocator = new PinnedAllocator;  // Never destroyed: tensors may be freed at exit.
    return *allocator;
  }

  c10::DataPtr allocate(size_t size) override {
    if (size == 0) { return {nullptr, nullptr, &release, c10::Device(c10::kCPU)}; }
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const auto rounded = static_cast<size_t>(round_up(static_cast<int64_t>(size), static_cast<int64_t>(page)));
    void* data = std::aligned_alloc(page, rounded);
    TORCH_CHECK_WITH(OutOfMemoryError, data != nullptr, "cannot allocate ", size, " bytes of pinned host memory");
    // A refusal (the limit of locked memory is often small) costs nothing here: no hardware reads these pages.
    (void)::mlock(data, rounded);
    const std::lock_guard lock(mutex_);
    blocks_[reinterpret_cast<uintptr_t>(data)] = rounded;
    return {data, data, &release, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t count) const override { std::memcpy(to, from, count); }

  bool contains(const void* data) const {
    const auto address = reinterpret_cast<uintptr_t>(data);
    const std::lock_guard lock(mutex_);
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin()) { return false; }
    --block;
    return address < block->first + block->second;
  }

 private:
  static void release(void* data) {
    if (data == nullptr) { return; }
    PinnedAllocator& self = instance();
    {
      const std::lock_guard lock(self.mutex_);
      const auto block = self.blocks_.find(reinterpret_cast<uintptr_t>(data));
      (void)::munlock(data, block->second);
      self.blocks_.erase(block);
    }
    std::free(data);
  }

  mutable std::mutex mutex_;
  std::map<uintptr_t, size_t> blocks_;  // start -> size
};

}  // namespace

c10::Allocator* pinned_allocator() { return &PinnedAllocator::instance(); }
bool is_pinned(const void* data) { return PinnedAllocator::instance().contains(data); }

}  // namespace spyre::glue
