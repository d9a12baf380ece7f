#pragma once

#include <bit>
#include <cstdint>

namespace spyre {

/// IEEE-style floats narrower than 32 bits, as bit patterns: fp16, bfloat16 and the two fp8 types of PyTorch.
///
/// All of them are one idea with different numbers, so one encoder and one decoder serve them all:
///
///     format            sign exponent fraction   bias   overflow   codes that are no number
///     fp16 (IEEE)          1        5       10     15   Inf        exponent 31
///     bfloat16             1        8        7    127   Inf        exponent 255
///     float8_e4m3fn        1        4        3      7   NaN        0x7F, 0xFF: no infinity, largest 448
///     float8_e5m2fnuz      1        5        2     16   NaN        0x80: no infinity, no -0, largest 57344
///
/// Every narrowing rounds to nearest, ties to even, and honours subnormals. A NaN narrows to the quiet NaN of
/// its sign with an empty payload; widening keeps the payload. fp8 does not saturate: what does not fit
/// becomes NaN, which is what `tensor.to(torch.float8_...)` does on the CPU.
///
/// These are definitions to be read, not fast paths: bulk conversion is `convert.h`. The card's own SEN169
/// has no subnormals and rounds otherwise; see `sen169.h`.
namespace small_float {

struct Shape {
  int fraction_bits;
  int bias;
};

inline constexpr Shape kFp16{.fraction_bits = 10, .bias = 15};
inline constexpr Shape kBf16{.fraction_bits = 7, .bias = 127};
inline constexpr Shape kE4M3FN{.fraction_bits = 3, .bias = 7};
inline constexpr Shape kE5M2FNUZ{.fraction_bits = 2, .bias = 16};

inline constexpr uint32_t kFp32Sign = 0x8000'0000;
inline constexpr uint32_t kFp32Infinity = 0x7F80'0000;
inline constexpr uint32_t kFp32QuietNan = 0x7FC0'0000;

/// value / 2^shift, rounded to nearest, ties to even. value < 2^25.
constexpr uint32_t shift_right_to_even(uint32_t value, int shift) {
  if (shift == 0) return value;
  if (shift > 25) return 0;
  const uint32_t odd = (value >> shift) & 1;
  return (value + (1u << (shift - 1)) - 1 + odd) >> shift;
}

/// Exponent and fraction fields of a finite fp32 magnitude (sign bit clear) in the given shape, as if
/// exponents had no end: the caller compares with its largest code. A carry out of the fraction lands in the
/// exponent by itself, because the hidden bit is added rather than masked.
constexpr uint32_t encode_magnitude(uint32_t fp32_magnitude, Shape shape) {
  const uint32_t field = fp32_magnitude >> 23;
  const uint32_t significand = (fp32_magnitude & 0x7F'FFFF) | (field == 0 ? 0 : 0x80'0000);
  const int exponent = (field == 0 ? 1 : static_cast<int>(field)) - 127 + shape.bias;
  const int subnormal_shift = exponent < 1 ? 1 - exponent : 0;
  const uint32_t rounded = shift_right_to_even(significand, 23 - shape.fraction_bits + subnormal_shift);
  const uint32_t above = exponent < 1 ? 0 : static_cast<uint32_t>(exponent - 1);
  return (above << shape.fraction_bits) + rounded;
}

/// The fp32 value of a finite magnitude (sign bit clear) in the given shape; exact for all four.
constexpr float decode_magnitude(uint32_t magnitude, Shape shape) {
  const uint32_t exponent = magnitude >> shape.fraction_bits;
  const uint32_t fraction = magnitude & ((1u << shape.fraction_bits) - 1);
  if (shape.bias == 127) return std::bit_cast<float>(magnitude << (23 - shape.fraction_bits));
  if (exponent == 0) {
    const auto unit = static_cast<uint32_t>(127 + 1 - shape.bias - shape.fraction_bits);
    return static_cast<float>(fraction) * std::bit_cast<float>(unit << 23);
  }
  const uint32_t field = exponent + static_cast<uint32_t>(127 - shape.bias);
  return std::bit_cast<float>((field << 23) | (fraction << (23 - shape.fraction_bits)));
}

constexpr bool is_nan_bits(uint32_t fp32_bits) {
  return (fp32_bits & ~kFp32Sign) > kFp32Infinity;
}

}  // namespace small_float

constexpr uint16_t fp16_from_fp32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & ~small_float::kFp32Sign;
  if (small_float::is_nan_bits(bits)) return sign | 0x7E00;
  const uint32_t code = small_float::encode_magnitude(magnitude, small_float::kFp16);
  return static_cast<uint16_t>(sign | (code < 0x7C00 ? code : 0x7C00));
}

constexpr float fp32_from_fp16(uint16_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x8000) << 16;
  const uint32_t magnitude = code & 0x7FFF;
  if (magnitude >= 0x7C00) {
    return std::bit_cast<float>(sign | small_float::kFp32Infinity | ((magnitude & 0x3FF) << 13));
  }
  return std::bit_cast<float>(
      sign | std::bit_cast<uint32_t>(small_float::decode_magnitude(magnitude, small_float::kFp16)));
}

constexpr uint16_t bf16_from_fp32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (small_float::is_nan_bits(bits)) return sign | 0x7FC0;
  const uint32_t magnitude = bits & ~small_float::kFp32Sign;
  // Infinity is exponent 255 with an empty fraction in both formats, so it needs no case of its own.
  return static_cast<uint16_t>(sign | small_float::encode_magnitude(magnitude, small_float::kBf16));
}

constexpr float fp32_from_bf16(uint16_t code) {
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
}

constexpr uint8_t e4m3fn_from_fp32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80);
  const uint32_t magnitude = bits & ~small_float::kFp32Sign;
  if (magnitude >= small_float::kFp32Infinity) return sign | 0x7F;
  const uint32_t code = small_float::encode_magnitude(magnitude, small_float::kE4M3FN);
  return static_cast<uint8_t>(sign | (code < 0x7F ? code : 0x7F));
}

constexpr float fp32_from_e4m3fn(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const uint32_t magnitude = code & 0x7F;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | small_float::kFp32QuietNan);
  return std::bit_cast<float>(
      sign | std::bit_cast<uint32_t>(small_float::decode_magnitude(magnitude, small_float::kE4M3FN)));
}

constexpr uint8_t e5m2fnuz_from_fp32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80);
  const uint32_t magnitude = bits & ~small_float::kFp32Sign;
  if (magnitude >= small_float::kFp32Infinity) return 0x80;
  const uint32_t code = small_float::encode_magnitude(magnitude, small_float::kE5M2FNUZ);
  if (code > 0x7F) return 0x80;
  return code == 0 ? 0 : static_cast<uint8_t>(sign | code);
}

constexpr float fp32_from_e5m2fnuz(uint8_t code) {
  if (code == 0x80) return std::bit_cast<float>(small_float::kFp32QuietNan);
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const uint32_t magnitude = code & 0x7F;
  return std::bit_cast<float>(
      sign | std::bit_cast<uint32_t>(small_float::decode_magnitude(magnitude, small_float::kE5M2FNUZ)));
}

}  // namespace spyre
