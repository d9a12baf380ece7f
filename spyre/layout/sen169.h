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
/// ## What the host stages
///
/// An infinity has no code of its own, and NaN in its place would spread from every attention mask. So whatever
/// the host hands over *saturates*: infinities and magnitudes beyond the range become the largest finite value
/// of their sign, and only NaN becomes 0x7FFF. The card itself does not saturate: a result beyond the range is
/// 0x7FFF there (`sen169_from_fp32`).
///
/// ## Two policies for fp16, because two sources disagree
///
/// The published rules (the DLFloat paper, the NNP data type 1 of IBM Z) and the converter that stages Spyre
/// tensors on the host differ for fp16. A tensor whose value must not change wants the first, and it is the
/// default; a byte comparison with a real card wants the second, quirks included (ADR 0032).
///
///     fp16 -> SEN169               kPublished (the default)            kVendor
///       normal                     odd last bit rounds away from 0     the same
///       65504, half way to 65536   stays finite: 65472 (0x5DFF)        the same
///       subnormal                  exact                               exact
///       Inf                        the largest finite, 0x7FFE          0x7E00
///       NaN, payload p             0x7FFF                              0x7E00 | p >> 1
///
///     SEN169 -> fp16
///       normal range of fp16       exact                               exact
///       65536 and above            Inf                                 Inf
///       below 2^-14                to nearest even                     half the value, truncated
///       exponent 63                Inf; NaN for 0x7FFF                 Inf for fraction 0 and 0x1FF,
///                                                                      else NaN with payload fraction << 1
///
/// Every other conversion is the same under both policies. In particular SEN169 -> fp32 gives NaN for 0x7FFF
/// although the host converter would give 8.6e9: losing a NaN in silence is not a quirk worth keeping.
enum class Sen169Policy : uint8_t { kVendor, kPublished };

inline constexpr uint16_t kSen169Nan = 0x7FFF;  ///< NaN or infinity; bit 15 is the sign
inline constexpr uint16_t kSen169One = 0x3E00;
inline constexpr uint16_t kSen169MaxFinite = 0x7FFE;    ///< 8573157376
inline constexpr uint16_t kSen169MinPositive = 0x0001;  ///< 2^-31 * (1 + 1/512)

/// fp32 -> SEN169 as the card rounds its results: to nearest, ties away from zero. Inf, NaN and whatever rounds
/// past the largest finite value become 0x7FFF with the sign of the input.
///
/// Magnitudes that round to 2^-31 or less become signed zero. 2^-31 itself would be exponent 0, fraction 0,
/// and that code is taken by zero; the published rule lets it fall to zero rather than bump it to the next
/// code, and so do we. The smallest magnitude that survives is therefore 2^-31 * (1 + 1/1024), which becomes
/// 0x0001.
uint16_t sen169_from_fp32(float value);

/// The same, saturating: what the host stages, and constants of programs. Only NaN becomes 0x7FFF. The tie at
/// 65504 goes down to 65472, so that `finfo(float16).max` is still finite when it is read as fp16.
uint16_t saturated_sen169_from_fp32(float value);

/// SEN169 -> fp32: exact; zero keeps its sign; 0x7FFF and 0xFFFF become the quiet NaN of their sign.
float fp32_from_sen169(uint16_t code);

uint16_t sen169_from_fp16(uint16_t fp16, Sen169Policy policy);
uint16_t fp16_from_sen169(uint16_t code, Sen169Policy policy);

/// bfloat16 through fp32. Into SEN169 the fraction always fits, the range saturates; back, two fraction bits are
/// rounded to nearest even.
uint16_t sen169_from_bf16(uint16_t bf16);
uint16_t bf16_from_sen169(uint16_t code);

/// Truth is 1.0; any code but the two zeros is true, NaN included.
uint16_t sen169_from_bool(bool value);
bool bool_from_sen169(uint16_t code);

/// An integer, rounded once: to nearest, ties away from zero. Saturates.
uint16_t sen169_from_int64(int64_t value);

}  // namespace spyre
