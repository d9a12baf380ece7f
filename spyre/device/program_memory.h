#pragma once

#include <functional>
#include <span>
#include <vector>

#include "spyre/device/address.h"
#include "spyre/device/exec/card_memory.h"

namespace spyre {

/// Bytes of device memory and the address under which a program finds them. Mostly that is where they lie;
/// programs with baked addresses see each argument at the start of a segment of its own.
struct MappedBytes {
  DeviceAddress at;
  std::span<std::byte> bytes;
};

/// What a running program can reach: the memory that was mapped for its launch, and the scratchpads.
///
///     address space    ....[ arg 0 ].......[ arg 1 ]....[ pool ]......
///                      fault   ok    fault    ok    fault  ok   fault
///
/// Everything else is not there: a program that strays faults, whoever the memory belongs to. That is what
/// keeps a bad program from touching data that is not its own.
class ProgramMemory final : public exec::CardMemory {
 public:
  using Scratchpads = std::function<Result<std::span<std::byte>>(int core)>;

  ProgramMemory(std::vector<MappedBytes> mapped, Scratchpads lx);

  Status read_hbm(uint64_t address, std::span<std::byte> to) override;
  Status write_hbm(uint64_t address, std::span<const std::byte> from) override;
  Status read_lx(int core, uint64_t offset, std::span<std::byte> to) override;
  Status write_lx(int core, uint64_t offset, std::span<const std::byte> from) override;
  Result<std::span<std::byte>> hbm_span(uint64_t address, uint64_t size) override;
  Result<std::span<std::byte>> lx_span(int core) override;

 private:
  Result<std::span<std::byte>> scratchpad(int core, uint64_t offset, size_t size) const;

  std::vector<MappedBytes> mapped_;
  Scratchpads lx_;
};

}  // namespace spyre
