#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace spyre {

/// Who opened a window, and what has to happen when it shuts.
class WindowOwner {
 public:
  virtual void close_window(std::span<std::byte> bytes) noexcept = 0;

 protected:
  ~WindowOwner() = default;
};

/// The only way host code touches device bytes: they are reachable while one of these is alive, no longer.
///
///     SPYRE_ASSIGN_OR_RETURN(const HostWindow window, device.open(range));
///     std::memcpy(window.bytes().data(), ...);
///     // ~HostWindow: the span must not be used any more
///
/// Behind a strict fence (see hbm.h) a span kept past its window faults at the first use. A window does not
/// lock anything: two threads that open the same bytes must agree among themselves, as on a real card. It
/// must not outlive the device.
class HostWindow {
 public:
  HostWindow() = default;
  /// `owner` may be null when shutting the window needs nothing.
  HostWindow(WindowOwner* owner, std::span<std::byte> bytes) : owner_(owner), bytes_(bytes) {}
  HostWindow(HostWindow&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  HostWindow& operator=(HostWindow&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostWindow() {
    if (owner_ != nullptr) {
      owner_->close_window(bytes_);
    }
  }

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  WindowOwner* owner_ = nullptr;
  std::span<std::byte> bytes_;
};

}  // namespace spyre
