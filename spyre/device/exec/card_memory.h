#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "spyre/base/result.h"

namespace spyre::exec {

/// What an executor sees of a card's memory: bytes, nothing else. The device implements it over its own
/// pages; tests implement it over a vector.
///
/// Addresses are those the program carries: 64-bit device addresses for HBM, offsets into one core's
/// scratchpad for LX. An access that is not wholly inside mapped memory returns an error; the executor turns
/// it into a fault that names core, address and instruction. Called from one thread at a time.
class CardMemory {
 public:
  virtual ~CardMemory() = default;

  virtual Status read_hbm(uint64_t address, std::span<std::byte> to) = 0;
  virtual Status write_hbm(uint64_t address, std::span<const std::byte> from) = 0;
  virtual Status read_lx(int core, uint64_t offset, std::span<std::byte> to) = 0;
  virtual Status write_lx(int core, uint64_t offset, std::span<const std::byte> from) = 0;
};

}  // namespace spyre::exec
