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
///
/// There are two ways in. The interpreter copies a stick at a time. The fast executor asks for the bytes
/// themselves (`hbm_span`, `lx_span`), once per tensor or core, and then works on them from several threads;
/// such spans stay valid until the run ends. A memory that has no bytes to show keeps the defaults, which
/// refuse: everything then runs through copies, slower and with the same result.
class CardMemory {
 public:
  virtual ~CardMemory() = default;

  virtual Status read_hbm(uint64_t address, std::span<std::byte> to) = 0;
  virtual Status write_hbm(uint64_t address, std::span<const std::byte> from) = 0;
  virtual Status read_lx(int core, uint64_t offset, std::span<std::byte> to) = 0;
  virtual Status write_lx(int core, uint64_t offset, std::span<const std::byte> from) = 0;

  /// The bytes [address, address + size) of HBM.
  virtual Result<std::span<std::byte>> hbm_span(uint64_t /*address*/, uint64_t /*size*/) { return no_span(); }
  /// The whole scratchpad of one core.
  virtual Result<std::span<std::byte>> lx_span(int /*core*/) { return no_span(); }

 protected:
  static Error no_span() { return Error(ErrorKind::kUnsupported, "this memory only copies bytes"); }
};

}  // namespace spyre::exec
