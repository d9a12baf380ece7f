#include "spyre/device/exec/vector_kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "spyre/layout/convert_simd.h"
#include "spyre/ops/formulas.h"

// Compiled again for each instruction set; see spyre/layout/convert_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "spyre/device/exec/vector_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "spyre/layout/sen169-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spyre::exec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using spyre::HWY_NAMESPACE::fp32_bits_from_raised;
using spyre::HWY_NAMESPACE::fp32_bits_from_sen169;
using spyre::HWY_NAMESPACE::has_sen169_nan;
using spyre::HWY_NAMESPACE::kSen169Fp32Rebias;
using spyre::HWY_NAMESPACE::sen169_from_fp32_bits;

using DFloat = hn::ScalableTag<float>;
using DBits = hn::RebindToSigned<DFloat>;
using DCode = hn::Rebind<uint16_t, DFloat>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(DFloat()));

// ---- Elements ----

template <bool kNan = true>
HWY_INLINE hn::Vec<DFloat> load_codes(const uint16_t* from) {
  return hn::BitCast(DFloat(), fp32_bits_from_sen169<kNan>(DCode(), DBits(), hn::LoadU(DCode(), from)));
}

HWY_INLINE hn::Vec<DFloat> without_nan_sign(hn::Vec<DFloat> v) {
  return hn::IfThenElse(hn::IsNaN(v), hn::BitCast(DFloat(), hn::Set(DBits(), 0x7FC0'0000)), v);
}

HWY_INLINE void store_codes(hn::Vec<DFloat> v, uint16_t* to) {
  const auto bits = hn::BitCast(DBits(), without_nan_sign(v));
  hn::StoreU(sen169_from_fp32_bits(DBits(), DCode(), bits), DCode(), to);
}

void widen(const std::byte* from, float* to, int64_t n) {
  const auto* codes = reinterpret_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < n; i += kLanes) {
    hn::StoreU(load_codes(codes + i), DFloat(), to + i);
  }
}

void narrow(const float* from, std::byte* to, int64_t n) {
  auto* codes = reinterpret_cast<uint16_t*>(to);
  for (int64_t i = 0; i < n; i += kLanes) {
    store_codes(hn::LoadU(DFloat(), from + i), codes + i);
  }
}

/// Whether a stick of codes has one that stands for NaN.
HWY_INLINE bool stick_has_nan(const uint16_t* codes) {
  const hn::ScalableTag<uint16_t> d;
  constexpr int kStep = static_cast<int>(hn::MaxLanes(hn::ScalableTag<uint16_t>()));
  auto all = hn::Or(hn::LoadU(d, codes), hn::Set(d, 0x8000));
  for (int i = kStep; i < 64; i += kStep) {
    all = hn::Max(all, hn::Or(hn::LoadU(d, codes + i), hn::Set(d, 0x8000)));
  }
  return has_sen169_nan(d, all);
}

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
// On x86 the cheap ways to take 16-bit lanes apart and to put them together again work inside blocks of 16
// bytes, and one undoes the order of the other. A stick of numbers may stay in that order as long as only its
// own kind meets it: pointwise rows do not care which lane they work on.

template <bool kNan>
HWY_INLINE void take_apart(const uint16_t* codes, float* to) {
  const hn::ScalableTag<uint16_t> d;
  for (int i = 0; i < 64; i += 2 * kLanes) {
    const auto v = hn::LoadU(d, codes + i);
    const auto low = hn::BitCast(DBits(), hn::InterleaveLower(d, hn::Zero(d), v));
    const auto high = hn::BitCast(DBits(), hn::InterleaveUpper(d, hn::Zero(d), v));
    hn::StoreU(hn::BitCast(DFloat(), fp32_bits_from_raised<kNan>(DBits(), hn::ShiftRight<2>(low))), DFloat(),
               to + i);
    hn::StoreU(hn::BitCast(DFloat(), fp32_bits_from_raised<kNan>(DBits(), hn::ShiftRight<2>(high))), DFloat(),
               to + i + kLanes);
  }
}

template <bool kNan>
HWY_INLINE void put_together(const float* from, uint16_t* codes) {
  const hn::ScalableTag<int16_t> d;
  const DBits wide;
  const auto magnitude = [&](hn::Vec<DBits> bits) HWY_ATTR {
    // Saturation does the rest: what is too large becomes 0x7FFF, what is too small stays negative.
    return hn::ShiftRight<14>(
        hn::Add(hn::And(bits, hn::Set(wide, 0x7FFF'FFFF)), hn::Set(wide, (1 << 13) - kSen169Fp32Rebias)));
  };
  for (int i = 0; i < 64; i += 2 * kLanes) {
    auto a = hn::LoadU(DFloat(), from + i), b = hn::LoadU(DFloat(), from + i + kLanes);
    if constexpr (kNan) {
      a = without_nan_sign(a);
      b = without_nan_sign(b);
    }
    const auto low = hn::BitCast(wide, a), high = hn::BitCast(wide, b);
    const auto code = hn::Max(hn::ReorderDemote2To(d, magnitude(low), magnitude(high)), hn::Zero(d));
    const auto upper = hn::ReorderDemote2To(d, hn::ShiftRight<16>(low), hn::ShiftRight<16>(high));
    hn::StoreU(hn::Or(code, hn::And(upper, hn::Set(d, INT16_MIN))), d, reinterpret_cast<int16_t*>(codes) + i);
  }
}

template <bool kNan>
HWY_INLINE void load_stick(const uint16_t* codes, float* to) {
  take_apart<kNan>(codes, to);
}

HWY_INLINE void store_stick(const float* from, uint16_t* codes) {
  auto nan = hn::IsNaN(hn::LoadU(DFloat(), from));
  for (int i = kLanes; i < 64; i += kLanes) {
    nan = hn::Or(nan, hn::IsNaN(hn::LoadU(DFloat(), from + i)));
  }
  if (HWY_UNLIKELY(!hn::AllFalse(DFloat(), nan))) {
    put_together<true>(from, codes);
  } else {
    put_together<false>(from, codes);
  }
}
#else
template <bool>
HWY_INLINE void load_stick(const uint16_t* codes, float* to) {
  widen(reinterpret_cast<const std::byte*>(codes), to, 64);
}
HWY_INLINE void store_stick(const float* from, uint16_t* codes) {
  narrow(from, reinterpret_cast<std::byte*>(codes), 64);
}
#endif

/// A format: what a stick holds, as numbers of type T. `load` and `store` agree on an order of lanes, which
/// need not be that of memory.
struct Sen169 {
  using T = float;
  static constexpr int kStick = 64;
  static HWY_INLINE bool has_nan(const std::byte* from) {
    return stick_has_nan(reinterpret_cast<const uint16_t*>(from));
  }
  template <bool kNan>
  static HWY_INLINE void load(const std::byte* from, T* to) {
    load_stick<kNan>(reinterpret_cast<const uint16_t*>(from), to);
  }
  static HWY_INLINE void store(const T* from, std::byte* to) {
    store_stick(from, reinterpret_cast<uint16_t*>(to));
  }
  static HWY_INLINE void splat(const std::byte* from, T* to) {
    uint16_t codes[kLanes] = {};
    std::memcpy(codes, from, sizeof(codes[0]));
    const T value = hn::GetLane(load_codes(codes));
    for (int i = 0; i < kStick; ++i) to[i] = value;
  }
};

struct Fp32 {
  using T = float;
  static constexpr int kStick = 32;
  static HWY_INLINE bool has_nan(const std::byte*) { return false; }  // needs no care
  template <bool>
  static HWY_INLINE void load(const std::byte* from, T* to) {
    std::memcpy(to, from, 128);
  }
  static HWY_INLINE void store(const T* from, std::byte* to) {
    uint32_t bits[kStick];
    std::memcpy(bits, from, 128);
    for (int i = 0; i < kStick; ++i) bits[i] = from[i] != from[i] ? 0x7FC0'0000u : bits[i];
    std::memcpy(to, bits, 128);
  }
  static HWY_INLINE void splat(const std::byte* from, T* to) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    for (int i = 0; i < kStick; ++i) to[i] = value;
  }
};

struct Int32 {
  using T = uint32_t;
  static constexpr int kStick = 32;
  static HWY_INLINE bool has_nan(const std::byte*) { return false; }  // needs no care
  template <bool>
  static HWY_INLINE void load(const std::byte* from, T* to) {
    std::memcpy(to, from, 128);
  }
  static HWY_INLINE void store(const T* from, std::byte* to) { std::memcpy(to, from, 128); }
  static HWY_INLINE void splat(const std::byte* from, T* to) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    for (int i = 0; i < kStick; ++i) to[i] = value;
  }
};

// ---- Pointwise ----

/// One stick of results. `in` are the sticks, `splats` what stands for those that are one element.
template <bool kNan, class Format, class Row>
HWY_INLINE void pointwise_stick(const std::byte* const* in, const bool* splat,
                                const typename Format::T (*splats)[Format::kStick],
                                const typename Format::T* k, std::byte* to) {
  using T = typename Format::T;
  alignas(64) T values[3][Format::kStick] = {}, out[Format::kStick];
  for (int i = 0; i < Row::kInputs; ++i) {
    if (splat[i]) {
      std::memcpy(values[i], splats[i], sizeof(values[i]));
    } else {
      Format::template load<kNan>(in[i], values[i]);
    }
  }
  for (int i = 0; i < Format::kStick; ++i) {
    out[i] = Row::apply(values[0][i], values[1][i], values[2][i], k);
  }
  Format::store(out, to);
}

template <class Format, class Row>
void pointwise_tile(const PointwiseTile& tile) {
  using T = typename Format::T;
  alignas(64) T splats[3][Format::kStick] = {};
  T k[3];
  std::memcpy(k, tile.k, sizeof(k));
  for (int64_t row = 0; row < tile.rows; ++row) {
    const std::byte* in[3] = {};
    for (int i = 0; i < Row::kInputs; ++i) {
      in[i] = tile.in[i] + row * tile.in_row[i];
      if (tile.splat[i]) Format::splat(in[i], splats[i]);
    }
    std::byte* to = tile.out + row * tile.out_row;
    for (int64_t at = 0; at < tile.run; at += Format::kStick, to += 128) {
      bool nan = false;
      for (int i = 0; i < Row::kInputs; ++i) {
        nan |= !tile.splat[i] && Format::has_nan(in[i]);
      }
      if (HWY_UNLIKELY(nan)) {
        pointwise_stick<true, Format, Row>(in, tile.splat, splats, k, to);
      } else {
        pointwise_stick<false, Format, Row>(in, tile.splat, splats, k, to);
      }
      for (int i = 0; i < Row::kInputs; ++i) {
        in[i] += tile.splat[i] ? 0 : 128;
      }
    }
  }
}

#define SPYRE_POINTWISE(name, inputs, formats, constants, mask, meaning) \
  template <typename T>                                                  \
  struct Row_##name {                                                    \
    static constexpr int kInputs = inputs;                               \
    static HWY_INLINE T apply(T x, T y, T z, const T* k) {               \
      using namespace formulas; /* NOLINT: rows name them unqualified */ \
      [[maybe_unused]] const T k0 = k[0], k1 = k[1], k2 = k[2];          \
      (void)x, (void)y, (void)z;                                         \
      return static_cast<T>(meaning);                                    \
    }                                                                    \
  };
#include "spyre/ops/table.def"

/// Rows with one 16-bit input are tables, see fast_pointwise.cpp.
PointwiseKernel find_pointwise(std::string_view op, DataFormat format) {
  constexpr bool kFp16 = true, kFp32 = true, kInt32 = false;
#define SPYRE_POINTWISE(name, inputs, formats, constants, mask, meaning)                          \
  if (op == #name) {                                                                              \
    if constexpr (!(formats)) {                                                                   \
      return format == DataFormat::IEEE_INT32 || format == DataFormat::SENUINT32                  \
                 ? pointwise_tile<Int32, Row_##name<uint32_t>>                                    \
                 : nullptr;                                                                       \
    } else {                                                                                      \
      if constexpr ((inputs) > 1) {                                                               \
        if (format == DataFormat::SEN169_FP16) return pointwise_tile<Sen169, Row_##name<float>>;  \
      }                                                                                           \
      return format == DataFormat::IEEE_FP32 ? pointwise_tile<Fp32, Row_##name<float>> : nullptr; \
    }                                                                                             \
  }
#include "spyre/ops/table.def"
  return nullptr;
}

// ---- Reductions ----

#define SPYRE_REDUCTION(name, formats, constants, variants, mask, start, meaning) \
  struct Fold_##name {                                                            \
    static HWY_INLINE float apply(float acc, float x) {                           \
      using namespace formulas; /* NOLINT: rows name them unqualified */          \
      using T = float;                                                            \
      return static_cast<T>(meaning);                                             \
    }                                                                             \
  };
#include "spyre/ops/table.def"

/// A stick as numbers, in the order of memory.
HWY_INLINE void widen_stick(Sen169, const std::byte* from, float* to) {
  const auto* codes = reinterpret_cast<const uint16_t*>(from);
  if (HWY_UNLIKELY(stick_has_nan(codes))) {
    return widen(from, to, 64);
  }
  for (int i = 0; i < 64; i += kLanes) {
    hn::StoreU(load_codes<false>(codes + i), DFloat(), to + i);
  }
}
HWY_INLINE void widen_stick(Fp32, const std::byte* from, float* to) {
  std::memcpy(to, from, 128);
}

template <class Format, class Fold>
void fold_sticks(const std::byte* first, int64_t stride, int64_t count, float* acc) {
  constexpr int kStick = Format::kStick;
  alignas(64) float sum[kStick], value[kStick];
  std::memcpy(sum, acc, sizeof(sum));
  for (int64_t i = 0; i < count; ++i) {
    widen_stick(Format(), first + i * stride, value);
    for (int lane = 0; lane < kStick; ++lane) {
      sum[lane] = Fold::apply(sum[lane], value[lane]);
    }
  }
  std::memcpy(acc, sum, sizeof(sum));
}

/// One stick of each row, turned: column i of all rows side by side.
HWY_INLINE void turn_sticks(Fp32, const FoldRows& rows, int64_t stick, float (*turned)[kFoldRows]) {
  for (int r = 0; r < kFoldRows; ++r) {
    float row[32];
    std::memcpy(row, rows.row[r] + stick * rows.stride, sizeof(row));
    for (int i = 0; i < 32; ++i) {
      turned[i][r] = row[i];
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void turn_sticks(Sen169, const FoldRows& rows, int64_t stick, float (*turned)[kFoldRows]) {
  for (int r = 0; r < kFoldRows; ++r) {
    float row[64];
    widen(rows.row[r] + stick * rows.stride, row, 64);
    for (int i = 0; i < 64; ++i) {
      turned[i][r] = row[i];
    }
  }
}
#else
/// Eight rows of eight codes, turned; `to` has kFoldRows codes per column.
HWY_INLINE void turn8(const std::byte* const* row, int64_t at, uint16_t* to) {
  const hn::Full128<uint16_t> d;
  const hn::Full128<uint32_t> pairs;
  const hn::Full128<uint64_t> quads;
  hn::Vec<decltype(d)> v[8], w[8];
  for (int r = 0; r < 8; ++r) {
    v[r] = hn::LoadU(d, reinterpret_cast<const uint16_t*>(row[r] + at));
  }
  for (int i = 0; i < 4; ++i) {  // rows 2i and 2i + 1, then four, then eight
    w[2 * i] = hn::InterleaveLower(d, v[2 * i], v[2 * i + 1]);
    w[2 * i + 1] = hn::InterleaveUpper(d, v[2 * i], v[2 * i + 1]);
  }
  hn::Vec<decltype(pairs)> p[8];
  for (int i = 0; i < 2; ++i) {
    for (int half = 0; half < 2; ++half) {
      const auto a = hn::BitCast(pairs, w[4 * i + half]), b = hn::BitCast(pairs, w[4 * i + 2 + half]);
      p[4 * i + 2 * half] = hn::InterleaveLower(pairs, a, b);
      p[4 * i + 2 * half + 1] = hn::InterleaveUpper(pairs, a, b);
    }
  }
  for (int i = 0; i < 4; ++i) {
    const auto a = hn::BitCast(quads, p[i]), b = hn::BitCast(quads, p[4 + i]);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(quads, a, b)), d, to + 2 * i * kFoldRows);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(quads, a, b)), d, to + (2 * i + 1) * kFoldRows);
  }
}

HWY_INLINE void turn_sticks(Sen169, const FoldRows& rows, int64_t stick, float (*turned)[kFoldRows]) {
  alignas(64) uint16_t codes[64][kFoldRows];
  bool nan = false;
  const int64_t at = stick * rows.stride;
  for (int r = 0; r < kFoldRows; ++r) {
    nan |= stick_has_nan(reinterpret_cast<const uint16_t*>(rows.row[r] + at));
  }
  for (int r = 0; r < kFoldRows; r += 8) {
    for (int i = 0; i < 64; i += 8) {
      turn8(rows.row + r, at + 2 * i, &codes[i][r]);
    }
  }
  for (int i = 0; i < 64 * kFoldRows; i += kLanes) {
    const uint16_t* from = codes[0] + i;
    hn::StoreU(HWY_UNLIKELY(nan) ? load_codes<true>(from) : load_codes<false>(from), DFloat(), turned[0] + i);
  }
}
#endif

template <class Format, class Fold>
void fold_rows(const FoldRows& rows, float* acc) {
  constexpr int kStick = Format::kStick;
  alignas(64) float sum[kFoldRows], turned[kStick][kFoldRows];
  std::memcpy(sum, acc, sizeof(sum));
  for (int64_t stick = 0; stick < rows.sticks; ++stick) {
    turn_sticks(Format(), rows, stick, turned);
    const int64_t first = stick * kStick;
    for (int64_t i = std::max(rows.masked_from - first, int64_t{0});
         i < std::min<int64_t>(rows.masked_to - first, kStick); ++i) {
      for (int r = 0; r < kFoldRows; ++r) {
        turned[i][r] = rows.masked;
      }
    }
    for (int i = 0; i < kStick; ++i) {
      for (int r = 0; r < kFoldRows; ++r) {
        sum[r] = Fold::apply(sum[r], turned[i][r]);
      }
    }
  }
  std::memcpy(acc, sum, sizeof(sum));
}

FoldSticksKernel find_fold_sticks(std::string_view op, DataFormat format) {
#define SPYRE_REDUCTION(name, formats, constants, variants, mask, start, meaning)      \
  if (op == #name) {                                                                   \
    if (format == DataFormat::SEN169_FP16) return fold_sticks<Sen169, Fold_##name>;    \
    return format == DataFormat::IEEE_FP32 ? fold_sticks<Fp32, Fold_##name> : nullptr; \
  }
#include "spyre/ops/table.def"
  return nullptr;
}

FoldRowsKernel find_fold_rows(std::string_view op, DataFormat format) {
#define SPYRE_REDUCTION(name, formats, constants, variants, mask, start, meaning)    \
  if (op == #name) {                                                                 \
    if (format == DataFormat::SEN169_FP16) return fold_rows<Sen169, Fold_##name>;    \
    return format == DataFormat::IEEE_FP32 ? fold_rows<Fp32, Fold_##name> : nullptr; \
  }
#include "spyre/ops/table.def"
  return nullptr;
}

// ---- Matrix products ----

// Registers decide: 32 wide ones hold 6 rows of 64 columns, 16 hold 6 rows of two vectors.
constexpr int kRows = 6;
#if HWY_TARGET == HWY_AVX3
constexpr int kVectors = 4;
#else
constexpr int kVectors = 2;
#endif
constexpr int kColumns = kVectors * kLanes;
static_assert(kPanel % kColumns == 0);

void pack(const std::byte* w, int64_t stride, int64_t depth, float* packed) {
  for (int64_t k = 0; k < depth; ++k) {
    const auto* codes = reinterpret_cast<const uint16_t*>(w + k * stride);
    for (int part = 0; part < kPanel / kColumns; ++part) {
      float* to = packed + (part * depth + k) * kColumns;
      for (int i = 0; i < kColumns; i += kLanes) {
        hn::StoreU(load_codes(codes + part * kColumns + i), DFloat(), to + i);
      }
    }
  }
}

/// kR rows by kV vectors of columns, everything in registers. `load(k, v)` gives vector v of row k of W.
template <int kR, int kV, class Load>
HWY_INLINE void multiply_block(const MatmulTile& t, float* c, Load&& load) {
  const DFloat d;
  hn::Vec<DFloat> acc[kR][kV];
  for (int r = 0; r < kR; ++r) {
    for (int v = 0; v < kV; ++v) {
      acc[r][v] = t.fresh ? hn::Zero(d) : hn::LoadU(d, c + r * kPanel + v * kLanes);
    }
  }
  const float* x = t.x;
  for (int64_t k = 0; k < t.depth; ++k) {
    hn::Vec<DFloat> w[kV];
    load(k, w);
    for (int r = 0; r < kR; ++r) {
      const auto scalar = hn::Set(d, x[r * t.x_row + k]);
      for (int v = 0; v < kV; ++v) {
        acc[r][v] = hn::MulAdd(scalar, w[v], acc[r][v]);
      }
    }
  }
  for (int r = 0; r < kR; ++r) {
    for (int v = 0; v < kV; ++v) {
      hn::StoreU(acc[r][v], d, c + r * kPanel + v * kLanes);
    }
  }
}

template <int kR = kRows, class Load>
HWY_INLINE void with_rows(const MatmulTile& t, float* c, Load&& load) {
  if (t.rows == kR) {
    multiply_block<kR, kVectors>(t, c, load);
  } else if constexpr (kR > 1) {
    with_rows<kR - 1>(t, c, load);
  }
}

void multiply(const MatmulTile& t, const float* packed) {
  for (int part = 0; part < kPanel / kColumns; ++part) {
    const float* w = packed + part * t.depth * kColumns;
    with_rows(t, t.c + part * kColumns, [&](int64_t k, hn::Vec<DFloat>* v) HWY_ATTR {
      for (int i = 0; i < kVectors; ++i) v[i] = hn::LoadU(DFloat(), w + k * kColumns + i * kLanes);
    });
  }
}

/// kV vectors of codes from column `first` on.
template <int kV>
HWY_INLINE void load_weights(const std::byte* row, int first, hn::Vec<DFloat>* v) {
  const auto* codes = reinterpret_cast<const uint16_t*>(row);
  const bool nan = stick_has_nan(codes);
  for (int i = 0; i < kV; ++i) {
    const uint16_t* from = codes + first + i * kLanes;
    v[i] = HWY_UNLIKELY(nan) ? load_codes<true>(from) : load_codes<false>(from);
  }
}

void multiply_codes(const MatmulTile& t, const std::byte* w, int64_t stride) {
  // One row leaves registers for more columns, so that W passes once.
  constexpr int kWide = std::min(kPanel / kLanes, 8);
  if (t.rows == 1) {
    for (int first = 0; first < kPanel; first += kWide * kLanes) {
      multiply_block<1, kWide>(t, t.c + first, [&](int64_t k, hn::Vec<DFloat>* v) HWY_ATTR {
        load_weights<kWide>(w + k * stride, first, v);
      });
    }
    return;
  }
  // Columns come in several passes: short ones, which find W in the cache.
  constexpr int64_t kPass = 128;
  for (int64_t begin = 0; begin < t.depth; begin += kPass) {
    MatmulTile pass = t;
    pass.x += begin;
    pass.depth = std::min(kPass, t.depth - begin);
    pass.fresh = t.fresh && begin == 0;
    for (int first = 0; first < kPanel; first += kColumns) {
      with_rows(pass, t.c + first, [&](int64_t k, hn::Vec<DFloat>* v) HWY_ATTR {
        load_weights<kVectors>(w + (begin + k) * stride, first, v);
      });
    }
  }
}

}  // namespace

VectorKernels kernels() {
  return {.name = hwy::TargetName(HWY_TARGET),
          .pointwise = find_pointwise,
          .fold_sticks = find_fold_sticks,
          .fold_rows = find_fold_rows,
          .widen = widen,
          .narrow = narrow,
          .matmul_rows = kRows,
          .pack = pack,
          .multiply = multiply,
          .multiply_codes = multiply_codes};
}

}  // namespace HWY_NAMESPACE
}  // namespace spyre::exec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spyre::exec {
namespace {

std::vector<VectorKernels> find_kernels() {
  std::vector<VectorKernels> built;
#if HWY_ARCH_X86
#if (HWY_TARGETS & HWY_AVX3) && HWY_STATIC_TARGET != HWY_AVX3
  built.push_back(N_AVX3::kernels());
#endif
#if (HWY_TARGETS & HWY_AVX2) && HWY_STATIC_TARGET != HWY_AVX2
  built.push_back(N_AVX2::kernels());
#endif
#if (HWY_TARGETS & HWY_SSE4) && HWY_STATIC_TARGET != HWY_SSE4
  built.push_back(N_SSE4::kernels());
#endif
#endif
  built.push_back(HWY_NAMESPACE::kernels());
  std::vector<VectorKernels> runnable;
  for (const SimdTarget& target : simd_targets()) {
    for (const VectorKernels& kernels : built) {
      if (kernels.name == target.name) {
        runnable.push_back(kernels);
      }
    }
  }
  return runnable;
}

}  // namespace

std::span<const VectorKernels> vector_kernels() {
  static const std::vector<VectorKernels> kernels = find_kernels();
  return kernels;
}

}  // namespace spyre::exec
#endif  // HWY_ONCE
