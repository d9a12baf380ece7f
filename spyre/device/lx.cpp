#include "spyre/device/lx.h"

#include <fmt/format.h>

namespace spyre {
namespace {

void poison(std::span<std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i % 2 == 0 ? kLxPoison & 0xFF : kLxPoison >> 8);
  }
}

}  // namespace

Lx::Lx(const Machine& machine)
    : bytes_per_core_(static_cast<size_t>(machine.lx_per_core.count())),
      cores_(static_cast<size_t>(machine.cores)) {}

Result<std::span<std::byte>> Lx::core(int index) {
  if (index < 0 || index >= static_cast<int>(cores_.size())) {
    return Error(ErrorKind::kOutOfRange,
                 fmt::format("core {} does not exist: the card has cores 0 to {}", index, cores_.size() - 1));
  }
  const std::lock_guard lock(mutex_);
  std::unique_ptr<std::byte[]>& bytes = cores_[static_cast<size_t>(index)];
  if (bytes == nullptr) {
    bytes = std::make_unique_for_overwrite<std::byte[]>(bytes_per_core_);
    poison({bytes.get(), bytes_per_core_});
  }
  return std::span<std::byte>(bytes.get(), bytes_per_core_);
}

void Lx::reset() {
  const std::lock_guard lock(mutex_);
  for (const auto& bytes : cores_) {
    if (bytes != nullptr) {
      poison({bytes.get(), bytes_per_core_});
    }
  }
}

}  // namespace spyre
