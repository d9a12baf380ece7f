/// SEN169 to and from fp32, a vector at a time: the one place where the rule of `sen169.cpp` is written for
/// vector units. Included by files that Highway compiles once per instruction set, hence the guard that
/// toggles.
#if defined(SPYRE_LAYOUT_SEN169_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPYRE_LAYOUT_SEN169_INL_H_
#undef SPYRE_LAYOUT_SEN169_INL_H_
#else
#define SPYRE_LAYOUT_SEN169_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace spyre {
namespace HWY_NAMESPACE {

/// The difference of the exponent biases, in place.
constexpr int32_t kSen169Fp32Rebias = 96 << 23;

/// The codes of fp32 lanes, given as their bits. `DTo` has as many lanes, 16 bits each.
template <class D, class DTo>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<DTo> sen169_from_fp32_bits(D d, DTo to, hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto magnitude = hn::And(v, hn::Set(d, 0x7FFF'FFFF));
  const auto sign = hn::And(hn::ShiftRight<16>(v), hn::Set(d, 0x8000));
  // Half an ulp (1 << 13) goes in and the rebias out in one subtraction, which cannot wrap.
  const auto rebiased = hn::Max(hn::Sub(magnitude, hn::Set(d, kSen169Fp32Rebias - (1 << 13))), hn::Zero(d));
  const auto code = hn::Min(hn::ShiftRight<14>(rebiased), hn::Set(d, 0x7FFF));
  return hn::DemoteTo(to, hn::Or(sign, code));
}

/// The same, saturating: only NaN becomes 0x7FFF, and 65504 stays within fp16.
template <class D, class DTo>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<DTo> saturated_sen169_from_fp32_bits(D d, DTo to,
                                                                        hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto magnitude = hn::And(v, hn::Set(d, 0x7FFF'FFFF));
  const auto nan = hn::Gt(magnitude, hn::Set(d, 0x7F80'0000));
  // The upper half of fp32's range is beyond ours; its place is taken by the largest finite value.
  const auto bounded = hn::Min(magnitude, hn::Set(d, (0x7FFE << 14) + kSen169Fp32Rebias));
  const auto largest_fp16 = hn::Eq(magnitude, hn::Set(d, 0x477F'E000));
  const auto kept =
      hn::IfThenElse(largest_fp16, hn::Set(d, 0x477F'C000), hn::IfThenElse(nan, magnitude, bounded));
  return sen169_from_fp32_bits(d, to,
                               hn::Or(kept, hn::And(v, hn::Set(d, static_cast<int32_t>(0x8000'0000u)))));
}

/// The upper 16 of the 32 bits of codes widened to fp32, and the lower 16: full vectors of 16-bit lanes, for
/// callers that put the half-words side by side. NaN comes out quiet, with its sign and some payload.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> fp32_upper_half_from_sen169(D d, hwy::HWY_NAMESPACE::Vec<D> code) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto magnitude = hn::And(code, hn::Set(d, 0x7FFF));
  const auto nan = hn::Eq(magnitude, hn::Set(d, 0x7FFF));
  const auto lack =
      hn::IfThenElse(nan, hn::Set(d, 0x7FC0 - (0x7FFF >> 2)), hn::Set(d, kSen169Fp32Rebias >> 16));
  const auto shifted = hn::And(hn::ShiftRight<2>(code), hn::Set(d, static_cast<int16_t>(0x9FFF)));
  return hn::Add(shifted, hn::IfThenElseZero(hn::Ne(magnitude, hn::Zero(d)), lack));
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> fp32_lower_half_from_sen169(D, hwy::HWY_NAMESPACE::Vec<D> code) {
  return hwy::HWY_NAMESPACE::ShiftLeft<14>(code);
}

/// The fp32 bits of codes. `DFrom` has as many lanes, 16 bits each, unsigned.
template <class DFrom, class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> fp32_bits_from_sen169(DFrom, D d, hwy::HWY_NAMESPACE::Vec<DFrom> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<DFrom> from;
  const auto raised = hn::ShiftLeft<14>(hn::PromoteTo(d, hn::BitCast(from, v)));
  // The sign is in place. The magnitude lacks a constant: none for zero, one of its own for NaN.
  const auto code = hn::And(raised, hn::Set(d, static_cast<int32_t>(0x8000'0000u) | (0x7FFF << 14)));
  const auto magnitude = hn::And(code, hn::Set(d, 0x7FFF << 14));
  const auto nan = hn::Eq(magnitude, hn::Set(d, 0x7FFF << 14));
  const auto lack =
      hn::IfThenElse(nan, hn::Set(d, 0x7FC0'0000 - (0x7FFF << 14)), hn::Set(d, kSen169Fp32Rebias));
  return hn::Add(code, hn::IfThenElseZero(hn::Ne(magnitude, hn::Zero(d)), lack));
}

}  // namespace HWY_NAMESPACE
}  // namespace spyre
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
