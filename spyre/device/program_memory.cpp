#include "spyre/device/program_memory.h"

#include <fmt/format.h>

#include <cstring>

namespace spyre {

ProgramMemory::ProgramMemory(std::vector<MappedBytes> mapped, Scratchpads lx)
    : mapped_(std::move(mapped)), lx_(std::move(lx)) {}

Result<std::span<std::byte>> ProgramMemory::hbm_span(uint64_t address, uint64_t size) {
  for (const MappedBytes& range : mapped_) {
    const uint64_t offset = address - static_cast<uint64_t>(range.at.value());  // wraps below the range
    if (offset <= range.bytes.size() && size <= range.bytes.size() - offset) {
      return range.bytes.subspan(offset, size);
    }
  }
  return Error(ErrorKind::kOutOfRange, fmt::format("{} bytes that are not memory of this launch", size));
}

Result<std::span<std::byte>> ProgramMemory::lx_span(int core) {
  return lx_(core);
}

Result<std::span<std::byte>> ProgramMemory::scratchpad(int core, uint64_t offset, size_t size) const {
  SPYRE_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, lx_(core));
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return Error(ErrorKind::kOutOfRange,
                 fmt::format("{} bytes past the end of a scratchpad of {} bytes", size, bytes.size()));
  }
  return bytes.subspan(offset, size);
}

Status ProgramMemory::read_hbm(uint64_t address, std::span<std::byte> to) {
  SPYRE_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, hbm_span(address, to.size()));
  std::memcpy(to.data(), bytes.data(), to.size());
  return {};
}

Status ProgramMemory::write_hbm(uint64_t address, std::span<const std::byte> from) {
  SPYRE_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, hbm_span(address, from.size()));
  std::memcpy(bytes.data(), from.data(), from.size());
  return {};
}

Status ProgramMemory::read_lx(int core, uint64_t offset, std::span<std::byte> to) {
  SPYRE_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, scratchpad(core, offset, to.size()));
  std::memcpy(to.data(), bytes.data(), to.size());
  return {};
}

Status ProgramMemory::write_lx(int core, uint64_t offset, std::span<const std::byte> from) {
  SPYRE_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, scratchpad(core, offset, from.size()));
  std::memcpy(bytes.data(), from.data(), from.size());
  return {};
}

}  // namespace spyre
