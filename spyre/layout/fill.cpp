#include "spyre/layout/fill.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "spyre/layout/small_float.h"

namespace spyre {
namespace {

bool same_number(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

template <typename Integer>
uint64_t integer_bits(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value)) return 0;
  // The largest int64 is no double: compare with the power of two behind it.
  if (value >= std::ldexp(1.0, Limits::digits)) return static_cast<uint64_t>(Limits::max());
  if (value <= static_cast<double>(Limits::min())) return static_cast<uint64_t>(Limits::min());
  return static_cast<uint64_t>(static_cast<Integer>(value));
}

/// The element's bits, low bits first.
uint64_t element_bits(double value, HostType type) {
  const auto narrow = static_cast<float>(value);
  switch (type) {
    case HostType::kFloat16:
      return fp16_from_fp32(narrow);
    case HostType::kBFloat16:
      return bf16_from_fp32(narrow);
    case HostType::kFloat32:
      return std::bit_cast<uint32_t>(narrow);
    case HostType::kBool:
      return value != 0 ? 1 : 0;
    case HostType::kInt8:
      return integer_bits<int8_t>(value);
    case HostType::kInt16:
      return integer_bits<int16_t>(value);
    case HostType::kInt32:
      return integer_bits<int32_t>(value);
    case HostType::kInt64:
      return integer_bits<int64_t>(value);
    case HostType::kUInt8:
      return integer_bits<uint8_t>(value);
    case HostType::kFloat8E4M3FN:
      return e4m3fn_from_fp32(narrow);
    case HostType::kFloat8E5M2FNUZ:
      return e5m2fnuz_from_fp32(narrow);
  }
  return 0;
}

}  // namespace

bool operator==(const Fill& a, const Fill& b) {
  return same_number(a.start, b.start) && same_number(a.step, b.step);
}

std::vector<std::byte> filled_elements(const Fill& fill, HostType type, int64_t count, int64_t row) {
  const auto width = static_cast<size_t>(info_of(type).host_bytes);
  std::vector<std::byte> elements(static_cast<size_t>(count) * width);
  for (int64_t i = 0; i < count; ++i) {
    const double value = fill.step == 0 ? fill.start : fill.start + fill.step * static_cast<double>(i % row);
    const uint64_t bits = element_bits(value, type);
    std::memcpy(elements.data() + static_cast<size_t>(i) * width, &bits, width);
  }
  return elements;
}

}  // namespace spyre
