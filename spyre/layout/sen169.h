#pragma once

#include <cstdint>

namespace spyre {

/// SEN169_FP16, also called DL16 or DLFloat16: the 16-bit float the card computes with.
///
///     15 14        9 8                 0
///     +-+-----------+------------------+
///     |s| exponent  |     fraction     |      value = (-1)^s * 2^(exponent - 31) * (1 + fraction / 512)
///     +-+-----------+------------------+
///
/// Compared with IEEE fp16 it has one exponent bit more (range 4.7e-10 .. 8.6e9) and one fraction bit less
/// (integers are exact up to 1024). There are no subnormals: exponent 0 is an ordinary binade, except that
/// the code with exponent 0 and fraction 0 is zero, signed. One code of each sign, 0x7FFF and 0xFFFF, means
/// "NaN or infinity".
///
///     1.0 = 0x3E00    0.5 = 0x3C00    65472 = 0x5DFF    largest = 0x7FFE    smallest = 0x0001
///
/// ## Two policies, because two sources disagree
///
/// The published rules (the DLFloat paper, the NNP data type 1 of IBM Z) and the converter that stages Spyre
/// tensors on the host differ for fp16. A program that must agree with the card byte for byte wants the
/// second, quirks included; someone who wants clean arithmetic wants the first.
///
///     fp16 -> SEN169               kVendor (the default)               kPublished
///       normal                     odd last bit rounds away from 0     the same
///       rounds up to 65536         stays 65472 (0x5DFF)                65536 (0x5E00)
///       subnormal                  exact                               exact
///       Inf                        0x7E00                              0x7FFF
///       NaN, payload p             0x7E00 | p >> 1                     0x7FFF
///
///     SEN169 -> fp16
///       normal range of fp16       exact                               exact
///       65536 and above            Inf                                 Inf
///       below 2^-14                half the value, truncated           to nearest even
///       exponent 63                Inf for fraction 0 and 0x1FF,       Inf; NaN for 0x7FFF
///                                  else NaN with payload fraction << 1
///
/// Every other conversion follows the published rules under both policies. In particular SEN169 -> fp32 gives
/// NaN for 0x7FFF although the host converter would give 8.6e9: losing a NaN in silence is not a quirk worth
/// keeping. A consequence to know: an fp16 Inf staged by kVendor is 0x7E00, which fp32 reads as the number
/// 4294967296.
enum class Sen169Policy : uint8_t { kVendor, kPublished };

inline constexpr uint16_t kSen169Nan = 0x7FFF;  ///< NaN or infinity; bit 15 is the sign
inline constexpr uint16_t kSen169One = 0x3E00;
inline constexpr uint16_t kSen169MaxFinite = 0x7FFE;    ///< 8573157376
inline constexpr uint16_t kSen169MinPositive = 0x0001;  ///< 2^-31 * (1 + 1/512)

/// fp32 -> SEN169: round to nearest, ties away from zero. Inf, NaN and whatever rounds past the largest
/// finite value become 0x7FFF with the sign of the input.
///
/// Magnitudes that round to 2^-31 or less become signed zero. 2^-31 itself would be exponent 0, fraction 0,
/// and that code is taken by zero; the published rule lets it fall to zero rather than bump it to the next
/// code, and so do we. The smallest magnitude that survives is therefore 2^-31 * (1 + 1/1024), which becomes
/// 0x0001.
uint16_t sen169_from_fp32(float value);

/// SEN169 -> fp32: exact; zero keeps its sign; 0x7FFF and 0xFFFF become the quiet NaN of their sign.
float fp32_from_sen169(uint16_t code);

uint16_t sen169_from_fp16(uint16_t fp16, Sen169Policy policy);
uint16_t fp16_from_sen169(uint16_t code, Sen169Policy policy);

/// bfloat16 through fp32. Into SEN169 the fraction always fits; back, two fraction bits are rounded to
/// nearest even.
uint16_t sen169_from_bf16(uint16_t bf16);
uint16_t bf16_from_sen169(uint16_t code);

/// Truth is 1.0; any code but the two zeros is true, NaN included.
uint16_t sen169_from_bool(bool value);
bool bool_from_sen169(uint16_t code);

/// An integer, rounded once: to nearest, ties away from zero. Beyond the largest finite value: 0x7FFF,
/// signed.
uint16_t sen169_from_int64(int64_t value);

/// True for the codes that are no number: 0x7FFF and 0xFFFF.
constexpr bool is_sen169_nan(uint16_t code) {
  return (code & 0x7FFF) == kSen169Nan;
}

}  // namespace spyre
