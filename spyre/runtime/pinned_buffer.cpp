#include "spyre/runtime/pinned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

#include "spyre/base/log.h"

namespace spyre {

Result<PinnedBuffer> PinnedBuffer::make(Bytes size) {
  if (size <= Bytes(0)) {
    return PinnedBuffer({});
  }
  const auto bytes = static_cast<size_t>(size.count());
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    return Error(ErrorKind::kOutOfMemory, fmt::format("the host has no {} bytes for a launch buffer", bytes));
  }
  if (mlock(pages, bytes) != 0) {
    log(LogLevel::kWarning, "runtime", fmt::format("a launch buffer of {} bytes could not be locked", bytes));
  }
  return PinnedBuffer({static_cast<std::byte*>(pages), bytes});
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

PinnedBuffer::~PinnedBuffer() {
  if (!bytes_.empty()) {
    munmap(bytes_.data(), bytes_.size());
  }
}

}  // namespace spyre
