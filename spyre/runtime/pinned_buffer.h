#pragma once

#include <cstddef>
#include <span>

#include "spyre/base/result.h"
#include "spyre/base/units.h"

namespace spyre {

/// Host memory that a card reads and writes directly: whole pages, kept in memory where the system allows it
/// (`ulimit -l`; otherwise a warning in the log, and everything works). Zero until written.
class PinnedBuffer {
 public:
  static Result<PinnedBuffer> make(Bytes size);
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&&) = delete;
  ~PinnedBuffer();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit PinnedBuffer(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace spyre
