#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "spyre/device/exec/card_memory.h"
#include "spyre/program/element.h"

namespace spyre::exec {

using namespace program;  // NOLINT: test support

/// A card's memory for tests: a few kilobytes of HBM from address 0, LX by core, poisoned with 0xA5. Keeps
/// note of every stick that was read or written, so that counters can be checked against what happened.
class TestMemory : public CardMemory {
 public:
  explicit TestMemory(size_t hbm_bytes, int cores = 32, size_t lx_bytes = 2u << 20)
      : hbm_(hbm_bytes, std::byte{0xA5}), lx_(cores), lx_bytes_(lx_bytes) {}

  Status read_hbm(uint64_t address, std::span<std::byte> to) override {
    SPYRE_TRY(check(address, to.size(), hbm_.size()));
    std::memcpy(to.data(), hbm_.data() + address, to.size());
    ++reads[address / 128];
    return Status();
  }
  Status write_hbm(uint64_t address, std::span<const std::byte> from) override {
    SPYRE_TRY(check(address, from.size(), hbm_.size()));
    std::memcpy(hbm_.data() + address, from.data(), from.size());
    ++writes[address / 128];
    return Status();
  }
  Status read_lx(int core, uint64_t offset, std::span<std::byte> to) override {
    SPYRE_TRY(check(offset, to.size(), lx_bytes_));
    std::memcpy(to.data(), lx(core).data() + offset, to.size());
    return Status();
  }
  Status write_lx(int core, uint64_t offset, std::span<const std::byte> from) override {
    SPYRE_TRY(check(offset, from.size(), lx_bytes_));
    std::memcpy(lx(core).data() + offset, from.data(), from.size());
    return Status();
  }

  Result<std::span<std::byte>> hbm_span(uint64_t address, uint64_t size) override {
    SPYRE_TRY(check(address, size, hbm_.size()));
    return std::span<std::byte>(hbm_).subspan(address, size);
  }
  Result<std::span<std::byte>> lx_span(int core) override { return std::span<std::byte>(lx(core)); }

  /// One core's scratchpad, made when first touched.
  std::vector<std::byte>& lx(int core) {
    std::vector<std::byte>& bytes = lx_.at(core);
    if (bytes.empty()) {
      bytes.assign(lx_bytes_, std::byte{0xA5});
    }
    return bytes;
  }
  std::vector<std::byte>& hbm() { return hbm_; }

  /// Same bytes everywhere; a scratchpad nobody touched holds poison.
  bool same_bytes(const TestMemory& other) const {
    const auto poisoned = [](const std::vector<std::byte>& bytes) {
      return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0xA5}; });
    };
    for (size_t core = 0; core < lx_.size(); ++core) {
      const std::vector<std::byte>&a = lx_[core], &b = other.lx_[core];
      if (a.empty() || b.empty() ? !poisoned(a) || !poisoned(b) : a != b) {
        return false;
      }
    }
    return hbm_ == other.hbm_;
  }

  /// Sets or reads element `i` of an array at a byte address.
  void put(uint64_t address, int64_t i, DataFormat format, float value) {
    put_bits(address, i, format, encode_element(format, value));
  }
  void put_bits(uint64_t address, int64_t i, DataFormat format, uint32_t bits) {
    const size_t bytes = bits_of(format) / 8;
    std::memcpy(hbm_.data() + address + i * bytes, &bits, bytes);
  }
  uint32_t get_bits(uint64_t address, int64_t i, DataFormat format) const {
    const size_t bytes = bits_of(format) / 8;
    uint32_t bits = 0;
    std::memcpy(&bits, hbm_.data() + address + i * bytes, bytes);
    return bits;
  }
  float get(uint64_t address, int64_t i, DataFormat format) const {
    return decode_element(format, get_bits(address, i, format));
  }

  std::map<uint64_t, int> reads, writes;  ///< HBM stick number -> accesses

 private:
  static Status check(uint64_t address, size_t bytes, size_t size) {
    if (address > size || bytes > size - address) {
      return Error(ErrorKind::kOutOfRange, "past the end of memory");
    }
    return Status();
  }

  std::vector<std::byte> hbm_;
  std::vector<std::vector<std::byte>> lx_;
  size_t lx_bytes_;
};

}  // namespace spyre::exec
