#include "spyre/device/hbm.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "spyre/base/text.h"

namespace spyre {
namespace {

int64_t page_bytes() {
  static const int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

std::byte* reserve_addresses(Bytes size, int protection) {
  void* base = mmap(nullptr, static_cast<size_t>(size.count()), protection,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

Error reservation_refused(Bytes size) {
  return Error(ErrorKind::kOutOfMemory, fmt::format("cannot reserve {} of host addresses for the card: {}",
                                                    human_bytes(size), std::strerror(errno)))
      .note("only addresses are reserved; memory is spent when it is first written")
      .try_instead("raise the address-space limit of this process (ulimit -v unlimited)");
}

}  // namespace

Result<std::unique_ptr<Hbm>> Hbm::reserve(const Machine& machine, Fence fence) {
  const Bytes size = machine.address_space();
  std::byte* bytes = reserve_addresses(size, fence == Fence::kStrict ? PROT_NONE : PROT_READ | PROT_WRITE);
  if (bytes == nullptr) {
    return reservation_refused(size);
  }
  std::byte* tokens = reserve_addresses(size, PROT_NONE);
  if (tokens == nullptr) {
    Error refused = reservation_refused(size);
    munmap(bytes, static_cast<size_t>(size.count()));
    return refused;
  }
  // Advice only: a kernel without huge pages is slower, not wrong.
  madvise(bytes, static_cast<size_t>(size.count()), MADV_HUGEPAGE);
  // A child of fork cannot use the card (runtime/fork.h), so it need not carry the pages either.
  madvise(bytes, static_cast<size_t>(size.count()), MADV_DONTFORK);
  return std::unique_ptr<Hbm>(new Hbm(bytes, tokens, size, fence));
}

Hbm::Hbm(std::byte* bytes, std::byte* tokens, Bytes size, Fence fence)
    : bytes_(bytes), tokens_(tokens), size_(size), fence_(fence), owner_(getpid()) {}

Hbm::~Hbm() {
  if (getpid() != owner_) {
    return;  // a child of fork: the bytes were not inherited, and something else may live there by now
  }
  munmap(bytes_, static_cast<size_t>(size_.count()));
  munmap(tokens_, static_cast<size_t>(size_.count()));
}

Result<HostWindow> Hbm::open(DeviceRange range) {
  const int64_t begin = range.begin.value();
  if (begin < 0 || range.size < Bytes(0) || begin > size_.count() || range.size > size_ - Bytes(begin)) {
    return Error(ErrorKind::kOutOfRange,
                 fmt::format("device range {:#x} + {} bytes leaves the address space of {:#x} bytes", begin,
                             range.size.count(), size_.count()));
  }
  const std::span<std::byte> bytes(bytes_ + begin, static_cast<size_t>(range.size.count()));
  if (fence_ == Fence::kOpen || bytes.empty()) {
    return HostWindow(nullptr, bytes);
  }
  count_windows(bytes, +1);
  return HostWindow(this, bytes);
}

void Hbm::close_window(std::span<std::byte> bytes) noexcept {
  count_windows(bytes, -1);
}

void Hbm::count_windows(std::span<std::byte> bytes, int change) {
  const int64_t page = page_bytes();
  const int64_t first = (bytes.data() - bytes_) / page;
  const int64_t last = (bytes.data() + bytes.size() - 1 - bytes_) / page;
  const int protection = change > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;

  const std::lock_guard lock(mutex_);
  for (int64_t p = first; p <= last;) {
    // One mprotect per run of pages that change sides.
    int64_t run_end = p;
    for (; run_end <= last; ++run_end) {
      int& windows = windows_per_page_[run_end];
      const bool was_open = windows > 0;
      windows += change;
      const bool is_open = windows > 0;
      if (!is_open) {
        windows_per_page_.erase(run_end);
      }
      if (was_open == is_open) {
        break;
      }
    }
    if (run_end > p) {
      const int failed = mprotect(bytes_ + p * page, static_cast<size_t>((run_end - p) * page), protection);
      SPYRE_CHECK(failed == 0, "the fence around device pages moves");
    }
    p = run_end + 1;  // run_end itself was counted, and stayed on its side
  }
}

void Hbm::discard(DeviceRange range) {
  const int64_t page = page_bytes();
  const int64_t begin = round_up(range.begin.value(), page);
  const int64_t end = range.end().value() / page * page;
  SPYRE_CHECK(range.begin.value() >= 0 && range.end().value() <= size_.count(), "a card's own range");
  if (begin < end) {
    madvise(bytes_ + begin, static_cast<size_t>(end - begin), MADV_DONTNEED);
  }
}

const void* Hbm::token(DeviceAddress address) const {
  return tokens_ + address.value();
}

std::optional<DeviceAddress> Hbm::address_of(const void* token) const {
  const auto* place = static_cast<const std::byte*>(token);
  if (std::less<>()(place, tokens_) || !std::less<>()(place, tokens_ + size_.count())) {
    return std::nullopt;
  }
  return DeviceAddress(place - tokens_);
}

Bytes Hbm::resident() const {
  const int64_t page = page_bytes();
  constexpr int64_t kStep = int64_t{1} << 30;
  std::vector<unsigned char> in_core(static_cast<size_t>(kStep / page));
  int64_t pages = 0;
  for (int64_t at = 0; at < size_.count(); at += kStep) {
    const int64_t length = std::min(kStep, size_.count() - at);
    if (mincore(bytes_ + at, static_cast<size_t>(length), in_core.data()) != 0) {
      continue;
    }
    for (int64_t i = 0; i < ceil_div(length, page); ++i) {
      pages += in_core[static_cast<size_t>(i)] & 1;
    }
  }
  return Bytes(pages * page);
}

}  // namespace spyre
