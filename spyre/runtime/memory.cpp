#include "spyre/runtime/memory.h"

#include <fmt/format.h>

#include "spyre/runtime/activity_log.h"
#include "spyre/runtime/allocator.h"
#include "spyre/runtime/fork.h"

namespace spyre {
namespace {

constexpr int64_t kReleased = 1;
constexpr int64_t kOneAccess = 2;

}  // namespace

Memory::~Memory() {
  if (!released()) {
    give_back();
  }
}

bool Memory::released() const {
  return (state_.load(std::memory_order_acquire) & kReleased) != 0;
}

void Memory::release() {
  if (state_.fetch_or(kReleased, std::memory_order_acq_rel) == 0) {
    give_back();  // not released before, and nobody inside
  }
}

bool Memory::pin() {
  int64_t seen = state_.load(std::memory_order_acquire);
  while ((seen & kReleased) == 0) {
    if (state_.compare_exchange_weak(seen, seen + kOneAccess, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

void Memory::unpin() {
  if (state_.fetch_sub(kOneAccess, std::memory_order_acq_rel) == kOneAccess + kReleased) {
    give_back();  // released while we were inside, and we are the last to leave
  }
}

void Memory::give_back() {
  if (!forked_after_start()) {
    const CallScope call("spyreFree");
    made_.allocator->give_back(*this);
  }
}

void Memory::describe(std::string text) {
  if (!forked_after_start()) {
    made_.allocator->describe(*this, std::move(text));
  }
}

std::string Memory::description() const {
  return forked_after_start() ? std::string() : made_.allocator->description(*this);
}

Error Memory::use_after_free() const {
  return Error(ErrorKind::kUseAfterFree,
               fmt::format("{} bytes at {:#x} of device {} are used after they were freed",
                           made_.requested.count(), made_.address.value(), made_.device_index))
      .try_instead("keep the tensor alive until the work that uses it is done");
}

Status Memory::check_range(Bytes offset, Bytes size) const {
  if (released()) {
    return use_after_free();
  }
  if (offset < Bytes(0) || size < Bytes(0) || offset > made_.requested || size > made_.requested - offset) {
    return Error(ErrorKind::kOutOfRange,
                 fmt::format("copy beyond the end: {} bytes at offset {} of an allocation of {} bytes",
                             size.count(), offset.count(), made_.requested.count()))
        .note(fmt::format("the allocation is {} on device {}",
                          description().empty() ? "without description" : description(), made_.device_index));
  }
  return {};
}

Result<Memory::Access> Memory::open(Bytes offset, Bytes size) {
  SPYRE_TRY(check_process());
  SPYRE_TRY(check_range(offset, size));
  if (!pin()) {
    return use_after_free();
  }
  auto window = made_.allocator->device().open({made_.address + offset, size});
  if (!window.ok()) {
    unpin();
    return window.error();
  }
  return Access(this, std::move(window).value());
}

Memory::Access::~Access() {
  window_ = HostWindow();  // swaps into a temporary, which shuts it
  if (memory_ != nullptr) {
    memory_->unpin();
  }
}

}  // namespace spyre
