#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/device/address.h"
#include "spyre/device/host_window.h"

namespace spyre {

/// How hard it is to reach device bytes without a window.
enum class Fence {
  kOpen,    ///< pages stay mapped; a stale span is a bug that goes unnoticed. What users run.
  kStrict,  ///< pages are unmapped from the host's view unless a window covers them. What tests run.
};

/// The memory of one card: the whole address space of the machine, reserved, not spent.
///
/// Two reservations of equal size:
///
///     bytes   [ seg 0 | seg 1 | ... | seg 7 ]   private, anonymous, no swap reserved: a page costs host
///                                               memory from its first touch until it is discarded
///     tokens  [ seg 0 | seg 1 | ... | seg 7 ]   never readable, never writable, never backed
///
/// The *token* of a device address is `token base + address`. It stands for the address wherever an interface
/// wants a pointer (PyTorch's data_ptr): it is unique in the process, offsets add up, it can be mapped back,
/// it says nothing about the bytes, and whoever dereferences it faults on the spot.
///
/// Bytes never written read as zero. All members may be called from any thread.
class Hbm final : private WindowOwner {
 public:
  /// Fails with kOutOfMemory when the host refuses the reservation (see `ulimit -v`).
  static Result<std::unique_ptr<Hbm>> reserve(const Machine& machine, Fence fence);
  ~Hbm();
  Hbm(const Hbm&) = delete;
  Hbm& operator=(const Hbm&) = delete;

  Bytes size() const { return size_; }

  /// Opens a range to the host; kOutOfRange when it does not lie in the address space.
  Result<HostWindow> open(DeviceRange range);

  /// Forgets the whole pages inside the range: they cost nothing again and read as zero. Bytes of partly
  /// covered pages keep their values, since the rest of such a page may belong to someone else. The caller
  /// owns the range: no window is open on it.
  void discard(DeviceRange range);

  const void* token(DeviceAddress address) const;
  /// The address behind a token; nothing when the pointer is not a token of this card.
  std::optional<DeviceAddress> address_of(const void* token) const;

  /// Host memory that pages of this card occupy now. Walks the address space: for tests and reports.
  Bytes resident() const;

 private:
  Hbm(std::byte* bytes, std::byte* tokens, Bytes size, Fence fence);
  void close_window(std::span<std::byte> bytes) noexcept override;
  /// Strict fence: adds `change` to the window count of each page and makes the pages that pass between
  /// "none" and "some" (un)reachable.
  void count_windows(std::span<std::byte> bytes, int change);

  std::byte* bytes_;
  std::byte* tokens_;
  Bytes size_;
  Fence fence_;
  int owner_;                                // process that made the reservations
  std::mutex mutex_;                         // guards windows_per_page_; a leaf
  std::map<int64_t, int> windows_per_page_;  // strict fence only: page index -> open windows
};

}  // namespace spyre
