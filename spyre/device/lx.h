#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"

namespace spyre {

/// What a scratchpad holds after reset, as a repeated little-endian 16-bit word. Not a number in the card's
/// 16-bit format, in fp16, in bf16 and, twice, in fp32: a program that reads before it writes is found out.
inline constexpr uint16_t kLxPoison = 0x7FFF;

/// The scratchpads of one card, one per core. A core's bytes cost host memory from its first use on.
///
/// Calls may come from any thread; the bytes of one core belong to whoever runs that core.
class Lx {
 public:
  explicit Lx(const Machine& machine);

  /// The scratchpad of one core, poisoned until written; kOutOfRange when there is no such core. The span
  /// stays valid as long as this object.
  Result<std::span<std::byte>> core(int index);

  /// Poisons every scratchpad.
  void reset();

 private:
  size_t bytes_per_core_;
  std::mutex mutex_;  // guards the pointers, not the bytes; a leaf
  std::vector<std::unique_ptr<std::byte[]>> cores_;
};

}  // namespace spyre
