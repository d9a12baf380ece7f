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

/// The fp32 bits of codes that stand, sign-extended, 14 bits up in their lanes; what is below them is
/// ignored. Without `kNan` the code for NaN comes out as a number: for callers that looked first.
template <bool kNan, class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> fp32_bits_from_raised(D d, hwy::HWY_NAMESPACE::Vec<D> raised) {
  namespace hn = hwy::HWY_NAMESPACE;
  // The sign is in place. The magnitude lacks a constant: none for zero, one of its own for NaN.
  const auto code = hn::And(raised, hn::Set(d, static_cast<int32_t>(0x8000'0000u) | (0x7FFF << 14)));
  const auto magnitude = hn::And(code, hn::Set(d, 0x7FFF << 14));
  auto lack = hn::IfThenElseZero(hn::Ne(magnitude, hn::Zero(d)), hn::Set(d, kSen169Fp32Rebias));
  if constexpr (kNan) {
    const auto nan = hn::Eq(magnitude, hn::Set(d, 0x7FFF << 14));
    lack = hn::IfThenElse(nan, hn::Set(d, 0x7FC0'0000 - (0x7FFF << 14)), lack);
  }
  return hn::Add(code, lack);
}

/// The fp32 bits of codes. `DFrom` has as many lanes, 16 bits each, unsigned.
template <bool kNan = true, class DFrom, class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> fp32_bits_from_sen169(DFrom, D d, hwy::HWY_NAMESPACE::Vec<DFrom> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<DFrom> from;
  return fp32_bits_from_raised<kNan>(d, hn::ShiftLeft<14>(hn::PromoteTo(d, hn::BitCast(from, v))));
}

/// Whether some code stands for NaN.
template <class D>
HWY_INLINE bool has_sen169_nan(D d, hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  return !hn::AllFalse(d, hn::Eq(hn::Or(v, hn::Set(d, 0x8000)), hn::Set(d, 0xFFFF)));
}

}  // namespace HWY_NAMESPACE
}  // namespace spyre
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
