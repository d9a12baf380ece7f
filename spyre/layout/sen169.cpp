#include "spyre/layout/sen169.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "spyre/layout/small_float.h"

namespace spyre {
namespace {

constexpr uint16_t kSign = 0x8000;
constexpr uint16_t kMagnitude = 0x7FFF;
constexpr int kFractionBits = 9;
constexpr uint16_t kFraction = 0x1FF;
constexpr uint16_t kTopExponent = 63 << kFractionBits;  // 0x7E00

// fp32 and SEN169 differ by 14 fraction bits and by 96 in the exponent bias.
constexpr int kFp32ExtraBits = 23 - kFractionBits;
constexpr uint32_t kFp32Rebias = (127u - 31u) << 23;

// fp16 exponents are biased by 15, ours by 31.
constexpr int kFp16Rebias = 31 - 15;
constexpr uint16_t kFp16Infinity = 0x7C00;
constexpr uint16_t kFp16HiddenBit = 0x400;
// The largest code whose value fp16 can hold: exponent 46, fraction 0x1FF, 65472.
constexpr uint16_t kLargestInFp16 = 0x5DFF;
constexpr float kLargestFp16 = 65504;  // half way between 65472 and 65536

uint16_t sen169_from_fp16_subnormal(uint16_t fraction) {
  const int shift = std::countl_zero(fraction) - 6;  // brings the leading one to bit 9, our hidden bit
  const int exponent = kFp16Rebias - shift;
  const int normalised = (fraction << shift) & kFraction;
  return static_cast<uint16_t>((exponent << kFractionBits) | normalised);
}

uint16_t fp16_magnitude_by_vendor(uint16_t magnitude) {
  const int exponent = (magnitude >> kFractionBits) - kFp16Rebias;
  const uint16_t fraction = magnitude & kFraction;
  if (magnitude >= kTopExponent) {
    const bool infinite = fraction == 0 || fraction == kFraction;
    return infinite ? kFp16Infinity : static_cast<uint16_t>(kFp16Infinity | (fraction << 1));
  }
  if (exponent >= 31) return kFp16Infinity;
  if (exponent >= 1) return static_cast<uint16_t>((exponent << 10) | (fraction << 1));
  if (exponent < -10) return 0;
  return static_cast<uint16_t>((fraction | 0x200) >> (1 - exponent));
}

}  // namespace

uint16_t sen169_from_fp32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & kSign);
  const uint32_t rounded = (bits & ~small_float::kFp32Sign) + (1u << (kFp32ExtraBits - 1));
  if (rounded < kFp32Rebias) return sign;
  const uint32_t code = (rounded - kFp32Rebias) >> kFp32ExtraBits;
  return static_cast<uint16_t>(sign | std::min<uint32_t>(code, kSen169Nan));
}

uint16_t saturated_sen169_from_fp32(float value) {
  const uint16_t code = sen169_from_fp32(value);
  if (std::fabs(value) == kLargestFp16) return static_cast<uint16_t>(code - 1);
  const bool beyond =
      (code & kMagnitude) == kSen169Nan && !small_float::is_nan_bits(std::bit_cast<uint32_t>(value));
  return beyond ? static_cast<uint16_t>(code - 1) : code;
}

float fp32_from_sen169(uint16_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & kSign) << 16;
  const uint32_t magnitude = code & kMagnitude;
  if (magnitude == 0) return std::bit_cast<float>(sign);
  if (magnitude == kSen169Nan) return std::bit_cast<float>(sign | small_float::kFp32QuietNan);
  return std::bit_cast<float>(sign | ((magnitude << kFp32ExtraBits) + kFp32Rebias));
}

uint16_t sen169_from_fp16(uint16_t fp16, Sen169Policy policy) {
  const uint16_t sign = fp16 & kSign;
  const uint16_t magnitude = fp16 & kMagnitude;
  if (magnitude == 0) return sign;
  if (magnitude < kFp16HiddenBit) return sign | sen169_from_fp16_subnormal(magnitude);
  if (magnitude >= kFp16Infinity) {
    if (policy == Sen169Policy::kVendor)
      return static_cast<uint16_t>(sign | kTopExponent | ((magnitude & 0x3FF) >> 1));
    return sign | (magnitude == kFp16Infinity ? kSen169MaxFinite : kSen169Nan);
  }
  // Dropping the last bit with "odd rounds up" is (m + 1) / 2, and the carry runs into the exponent by
  // itself.
  const int code = ((magnitude + 1) >> 1) + (kFp16Rebias << kFractionBits);
  return static_cast<uint16_t>(sign | std::min<int>(code, kLargestInFp16));
}

uint16_t fp16_from_sen169(uint16_t code, Sen169Policy policy) {
  if (policy == Sen169Policy::kPublished) return fp16_from_fp32(fp32_from_sen169(code));
  return (code & kSign) | fp16_magnitude_by_vendor(code & kMagnitude);
}

uint16_t sen169_from_bf16(uint16_t bf16) {
  return saturated_sen169_from_fp32(fp32_from_bf16(bf16));
}

uint16_t bf16_from_sen169(uint16_t code) {
  return bf16_from_fp32(fp32_from_sen169(code));
}

uint16_t sen169_from_bool(bool value) {
  return value ? kSen169One : 0;
}

bool bool_from_sen169(uint16_t code) {
  return (code & kMagnitude) != 0;
}

uint16_t sen169_from_int64(int64_t value) {
  // Ties away from zero look at one bit below the last kept one and at nothing further down. So the integer
  // may be cut, not rounded, to the 24 bits of an fp32, and rounding happens once.
  const bool negative = value < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const int excess = std::max(0, 40 - std::countl_zero(magnitude));
  magnitude = (magnitude >> excess) << excess;
  const auto as_fp32 = static_cast<float>(magnitude);
  return saturated_sen169_from_fp32(negative ? -as_fp32 : as_fp32);
}

}  // namespace spyre
