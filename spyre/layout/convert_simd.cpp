#include "spyre/layout/convert_simd.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

// Highway compiles this file again for each instruction set, each time in a namespace of its own. SSSE3 alone
// and the deeper AVX-512 level would add code but no speed here.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "spyre/layout/convert_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "spyre/layout/sen169-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spyre {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// sen169.cpp has the definitions that all of this must match, bit for bit.
// Lanes are signed where possible: magnitudes stay below 2^15, and signed compares exist everywhere.

constexpr int16_t kSignBit = INT16_MIN;
constexpr int16_t kMagnitude = 0x7FFF;
constexpr int16_t kTop = 0x7E00;            // SEN169 exponent 63, fraction 0
constexpr int16_t kLargest = 0x7FFE;        // the largest finite SEN169 value
constexpr int16_t kLargestInFp16 = 0x5DFF;  // 65472, the largest SEN169 code that fp16 can hold
constexpr int16_t kFp16Largest = 0x7BFF;    // 65504
constexpr int16_t kFp16Infinity = 0x7C00;
constexpr int16_t kFp16QuietNan = 0x7E00;
constexpr int16_t kFp16Rebias = 16 << 9;  // the difference of the exponent biases, in place
constexpr int16_t kBf16Rebias = 96 << 7;
constexpr int16_t kBf16Infinity = 0x7F80;

// ---- 16 -> 16 bits ----

/// Moves lanes whose leading one is below bit 10 - kShift up by kShift, and lowers their exponent as much.
template <int kShift, class D, class V>
void shift_up(D d, V& magnitude, V& exponent) {
  const auto low = hn::Lt(magnitude, hn::Set(d, int16_t{1 << (10 - kShift)}));
  magnitude = hn::IfThenElse(low, hn::ShiftLeft<kShift>(magnitude), magnitude);
  exponent = hn::Sub(exponent, hn::IfThenElseZero(low, hn::Set(d, int16_t{kShift << 9})));
}

/// fp16 subnormal magnitudes (1 .. 0x3FF) to SEN169: brings the leading one to bit 9.
template <class D, class V = hn::Vec<D>>
V normalise(D d, V magnitude) {
  V exponent = hn::Set(d, 15 << 9);  // the hidden bit at bit 9 adds one when the two are summed
  shift_up<8>(d, magnitude, exponent);
  shift_up<4>(d, magnitude, exponent);
  shift_up<2>(d, magnitude, exponent);
  shift_up<1>(d, magnitude, exponent);
  return hn::Add(exponent, magnitude);
}

template <Sen169Policy kPolicy>
struct Fp16ToSen169 {
  template <class D, class V = hn::Vec<D>>
  static V apply(D d, V v) {
    const V sign = hn::And(v, hn::Set(d, kSignBit));
    const V magnitude = hn::And(v, hn::Set(d, kMagnitude));
    // (m + 1) / 2 rounds an odd last bit up; at 0x7FFF the sum wraps, but such lanes are replaced below.
    V code = hn::Add(hn::ShiftRight<1>(hn::Add(magnitude, hn::Set(d, 1))), hn::Set(d, kFp16Rebias));
    code = hn::Min(code, hn::Set(d, kLargestInFp16));
    const auto special = hn::Gt(magnitude, hn::Set(d, kFp16Largest));
    if constexpr (kPolicy == Sen169Policy::kVendor) {
      const V payload = hn::And(hn::ShiftRight<1>(magnitude), hn::Set(d, 0x1FF));
      code = hn::IfThenElse(special, hn::Or(payload, hn::Set(d, kTop)), code);
    } else {
      const auto nan = hn::Gt(magnitude, hn::Set(d, kFp16Infinity));
      code = hn::IfThenElse(special, hn::Set(d, kLargest), code);
      code = hn::IfThenElse(nan, hn::Set(d, kMagnitude), code);
    }
    const auto zero = hn::Eq(magnitude, hn::Zero(d));
    const auto subnormal = hn::AndNot(zero, hn::Lt(magnitude, hn::Set(d, 0x400)));
    if (HWY_UNLIKELY(!hn::AllFalse(d, subnormal))) {
      code = hn::IfThenElse(subnormal, normalise(d, magnitude), code);
    }
    return hn::Or(sign, hn::IfThenZeroElse(zero, code));
  }
};

/// SEN169 magnitudes below 2^-14 to fp16 subnormals.
template <Sen169Policy kPolicy, class D, class V = hn::Vec<D>>
V denormalise(D d, V magnitude) {
  const hn::RebindToUnsigned<D> du;
  // Past 12 everything is shifted out; the cap keeps the shift counts legal.
  const auto shift =
      hn::BitCast(du, hn::Min(hn::Sub(hn::Set(d, 17), hn::ShiftRight<9>(magnitude)), hn::Set(d, 12)));
  const auto significand = hn::BitCast(du, hn::Or(hn::And(magnitude, hn::Set(d, 0x1FF)), hn::Set(d, 0x200)));
  if constexpr (kPolicy == Sen169Policy::kVendor) {
    return hn::BitCast(d, hn::Shr(significand, shift));
  } else {
    // To nearest even: add half less one, and one more if the quotient is odd.
    const auto one = hn::Set(du, 1);
    const auto twice = hn::ShiftLeft<1>(significand);
    const auto odd = hn::And(hn::Shr(twice, shift), one);
    const auto below_half = hn::Sub(hn::Shl(one, hn::Sub(shift, one)), one);
    return hn::BitCast(d, hn::Shr(hn::Add(hn::Add(twice, below_half), odd), shift));
  }
}

template <Sen169Policy kPolicy>
struct Sen169ToFp16 {
  template <class D, class V = hn::Vec<D>>
  static V apply(D d, V v) {
    const V sign = hn::And(v, hn::Set(d, kSignBit));
    const V magnitude = hn::And(v, hn::Set(d, kMagnitude));
    V half = hn::ShiftLeft<1>(hn::Sub(magnitude, hn::Set(d, kFp16Rebias)));
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kLargestInFp16)), hn::Set(d, kFp16Infinity), half);
    const auto last = hn::Eq(magnitude, hn::Set(d, kMagnitude));
    if constexpr (kPolicy == Sen169Policy::kVendor) {
      const auto nan = hn::AndNot(last, hn::Gt(magnitude, hn::Set(d, kTop)));
      const V payload = hn::And(hn::ShiftLeft<1>(magnitude), hn::Set(d, 0x3FF));
      half = hn::IfThenElse(nan, hn::Or(payload, hn::Set(d, kFp16Infinity)), half);
    } else {
      half = hn::IfThenElse(last, hn::Set(d, kFp16QuietNan), half);
    }
    const auto zero = hn::Eq(magnitude, hn::Zero(d));
    const auto tiny = hn::AndNot(zero, hn::Lt(magnitude, hn::Set(d, 0x2200)));
    if (HWY_UNLIKELY(!hn::AllFalse(d, tiny))) {
      half = hn::IfThenElse(tiny, denormalise<kPolicy>(d, magnitude), half);
    }
    return hn::Or(sign, hn::IfThenZeroElse(zero, half));
  }
};

struct Bf16ToSen169 {
  template <class D, class V = hn::Vec<D>>
  static V apply(D d, V v) {
    const V sign = hn::And(v, hn::Set(d, kSignBit));
    const V magnitude = hn::And(v, hn::Set(d, kMagnitude));
    const V rebiased = hn::Max(hn::Sub(magnitude, hn::Set(d, kBf16Rebias)), hn::Zero(d));
    const auto too_large = hn::Gt(rebiased, hn::Set(d, 0x1FFF));
    const V code = hn::IfThenElse(too_large, hn::Set(d, kLargest), hn::ShiftLeft<2>(rebiased));
    const auto nan = hn::Gt(magnitude, hn::Set(d, kBf16Infinity));
    return hn::Or(sign, hn::IfThenElse(nan, hn::Set(d, kMagnitude), code));
  }
};

struct Sen169ToBf16 {
  template <class D, class V = hn::Vec<D>>
  static V apply(D d, V v) {
    const hn::RebindToUnsigned<D> du;
    const V sign = hn::And(v, hn::Set(d, kSignBit));
    const V magnitude = hn::And(v, hn::Set(d, kMagnitude));
    // Two bits go, to nearest even. The sum may reach 2^15, so it is shifted as unsigned.
    const V odd = hn::And(hn::ShiftRight<2>(magnitude), hn::Set(d, 1));
    const V sum = hn::Add(hn::Add(magnitude, hn::Set(d, 1)), odd);
    V brain = hn::Add(hn::BitCast(d, hn::ShiftRight<2>(hn::BitCast(du, sum))), hn::Set(d, kBf16Rebias));
    brain = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, kMagnitude)), hn::Set(d, 0x7FC0), brain);
    return hn::Or(sign, hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(d)), brain));
  }
};

// ---- Lanes that change width ----
//
// Each maps a vector of source lanes to a vector of as many destination lanes. One with `fits` also says
// whether every lane had an image.

template <class Op>
struct Lanes16 {
  using Src = int16_t;
  using Dst = int16_t;
  template <class DSrc, class DDst>
  static hn::Vec<DDst> apply(DSrc d, DDst, hn::Vec<DSrc> v) {
    return Op::apply(d, v);
  }
};

struct Fp32ToSen169 {
  using Src = int32_t;
  using Dst = uint16_t;
  template <class DSrc, class DDst>
  static hn::Vec<DDst> apply(DSrc d, DDst to, hn::Vec<DSrc> v) {
    return saturated_sen169_from_fp32_bits(d, to, v);
  }
};

struct Sen169ToFp32 {
  using Src = uint16_t;
  using Dst = int32_t;
  template <class DSrc, class DDst>
  static hn::Vec<DDst> apply(DSrc from, DDst d, hn::Vec<DSrc> v) {
    return fp32_bits_from_sen169(from, d, v);
  }
};

struct BoolToSen169 {
  using Src = uint8_t;
  using Dst = int16_t;
  template <class DSrc, class DDst>
  static hn::Vec<DDst> apply(DSrc, DDst d, hn::Vec<DSrc> v) {
    return hn::IfThenZeroElse(hn::Eq(hn::PromoteTo(d, v), hn::Zero(d)), hn::Set(d, kSen169One));
  }
};

struct Sen169ToBool {
  using Src = int16_t;
  using Dst = uint8_t;
  template <class DSrc, class DDst>
  static hn::Vec<DDst> apply(DSrc d, DDst to, hn::Vec<DSrc> v) {
    const auto zero = hn::Eq(hn::And(v, hn::Set(d, kMagnitude)), hn::Zero(d));
    return hn::DemoteTo(to, hn::IfThenZeroElse(zero, hn::Set(d, 1)));
  }
};

struct Int32ToInt64 {
  using Src = int32_t;
  using Dst = int64_t;
  template <class DSrc, class DDst>
  static hn::Vec<DDst> apply(DSrc, DDst d, hn::Vec<DSrc> v) {
    return hn::PromoteTo(d, v);
  }
};

struct Int64ToInt32 {
  using Src = int64_t;
  using Dst = int32_t;
  template <class DSrc, class DDst>
  static hn::Vec<DDst> apply(DSrc, DDst to, hn::Vec<DSrc> v) {
    const hn::RebindToUnsigned<DSrc> du;
    const hn::RebindToUnsigned<DDst> to_unsigned;
    return hn::BitCast(to, hn::TruncateTo(to_unsigned, hn::BitCast(du, v)));
  }
  template <class DSrc, class V = hn::Vec<DSrc>>
  static bool fits(DSrc d, V v) {
    // A value fits when its upper half repeats the sign of its lower half: adding 2^31 then leaves no high
    // bits.
    const hn::RebindToUnsigned<DSrc> du;
    const auto moved = hn::BitCast(du, hn::Add(v, hn::Set(d, int64_t{1} << 31)));
    return hn::AllTrue(du, hn::Eq(hn::ShiftRight<32>(moved), hn::Zero(du)));
  }
  static bool fits(int64_t value) { return std::in_range<int32_t>(value); }
};

template <class Op>
concept Checked = requires {
  Op::fits(typename Op::Src{});
};

// ---- The loop they share ----

template <class Op>
struct ConversionLoop {
  using Src = typename Op::Src;
  using Dst = typename Op::Dst;
  using Wide = std::conditional_t<(sizeof(Src) > sizeof(Dst)), Src, Dst>;
  using DWide = hn::ScalableTag<Wide>;
  using DSrc = hn::Rebind<Src, DWide>;
  using DDst = hn::Rebind<Dst, DWide>;

  /// One vector. False when some lane has no image.
  static bool step(const Src* src, Dst* dst) {
    const DSrc from;
    const DDst to;
    const auto v = hn::LoadU(from, src);
    hn::StoreU(Op::apply(from, to, v), to, dst);
    if constexpr (Checked<Op>) {
      return HWY_LIKELY(Op::fits(from, v));
    } else {
      return true;
    }
  }

  static int64_t first_misfit(const Src* src, int64_t i) {
    if constexpr (Checked<Op>) {
      for (Src value;; ++i) {
        std::memcpy(&value, src + i, sizeof(Src));
        if (!Op::fits(value)) return i;
      }
    }
    return i;
  }

  static int64_t run(const std::byte* src_bytes, std::byte* dst_bytes, int64_t n) {
    const auto* src = reinterpret_cast<const Src*>(src_bytes);
    auto* dst = reinterpret_cast<Dst*>(dst_bytes);
    const auto lanes = static_cast<int64_t>(hn::Lanes(DWide()));
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      if (!step(src + i, dst + i)) return first_misfit(src, i);
    }
    return i < n ? run_tail(src, dst, i, n) : n;
  }

  /// Fewer elements than lanes: through buffers padded with zeros, which always have an image.
  static int64_t run_tail(const Src* src, Dst* dst, int64_t begin, int64_t n) {
    HWY_ALIGN Src padded[HWY_MAX_BYTES / sizeof(Src)] = {};
    HWY_ALIGN Dst converted[HWY_MAX_BYTES / sizeof(Dst)];
    const auto count = static_cast<size_t>(n - begin);
    std::memcpy(padded, src + begin, count * sizeof(Src));
    const bool fits = step(padded, converted);
    std::memcpy(dst + begin, converted, count * sizeof(Dst));
    return fits ? n : first_misfit(src, begin);
  }
};

struct Row {
  Encoding src;
  Encoding dst;
  ConvertKernel kernel[2];  // by Sen169Policy
};

template <class Vendor, class Published = Vendor>
constexpr Row row(DataFormat src, DataFormat dst) {
  return {{src, sizeof(typename Vendor::Src)},
          {dst, sizeof(typename Vendor::Dst)},
          {ConversionLoop<Vendor>::run, ConversionLoop<Published>::run}};
}

ConvertKernel find(Encoding src, Encoding dst, Sen169Policy policy) {
  using enum DataFormat;
  using enum Sen169Policy;
  static constexpr Row kRows[] = {
      row<Lanes16<Fp16ToSen169<kVendor>>, Lanes16<Fp16ToSen169<kPublished>>>(IEEE_FP16, SEN169_FP16),
      row<Lanes16<Sen169ToFp16<kVendor>>, Lanes16<Sen169ToFp16<kPublished>>>(SEN169_FP16, IEEE_FP16),
      row<Lanes16<Bf16ToSen169>>(BFLOAT16, SEN169_FP16),
      row<Lanes16<Sen169ToBf16>>(SEN169_FP16, BFLOAT16),
      row<Fp32ToSen169>(IEEE_FP32, SEN169_FP16),
      row<Sen169ToFp32>(SEN169_FP16, IEEE_FP32),
      row<BoolToSen169>(BOOL, SEN169_FP16),
      row<Sen169ToBool>(SEN169_FP16, BOOL),
      row<Int64ToInt32>(IEEE_INT64, IEEE_INT32),
      row<Int32ToInt64>(IEEE_INT32, IEEE_INT64),
  };
  for (const Row& candidate : kRows) {
    if (candidate.src == src && candidate.dst == dst) return candidate.kernel[static_cast<size_t>(policy)];
  }
  return nullptr;
}

}  // namespace

SimdTarget target() {
  return {hwy::TargetName(HWY_TARGET), find};
}

}  // namespace HWY_NAMESPACE
}  // namespace spyre
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spyre {
namespace {

// Highway's own dispatcher lives in its shared library. Asking the compiler's run-time support instead keeps
// Highway a header-only dependency, so that a wheel need not carry the library.
std::vector<SimdTarget> find_targets() {
  std::vector<SimdTarget> targets;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  [[maybe_unused]] const bool sse4 = __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                                     __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  // F16C is not asked for: clang 14 does not know the name, and no processor has AVX2 without it.
  [[maybe_unused]] const bool avx2 = sse4 && __builtin_cpu_supports("avx2") &&
                                     __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                                     __builtin_cpu_supports("bmi2");
  [[maybe_unused]] const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") &&
                                     __builtin_cpu_supports("avx512vl") &&
                                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#if (HWY_TARGETS & HWY_AVX3) && HWY_STATIC_TARGET != HWY_AVX3
  if (avx3) targets.push_back(N_AVX3::target());
#endif
#if (HWY_TARGETS & HWY_AVX2) && HWY_STATIC_TARGET != HWY_AVX2
  if (avx2) targets.push_back(N_AVX2::target());
#endif
#if (HWY_TARGETS & HWY_SSE4) && HWY_STATIC_TARGET != HWY_SSE4
  if (sse4) targets.push_back(N_SSE4::target());
#endif
#endif
  targets.push_back(HWY_NAMESPACE::target());  // what the compiler may assume of any processor
  return targets;
}

}  // namespace

std::span<const SimdTarget> simd_targets() {
  static const auto& targets =
      *new std::vector<SimdTarget>(find_targets());  // never destroyed: threads outlive `exit`
  return targets;
}

}  // namespace spyre
#endif  // HWY_ONCE
