#include "spyre/device/exec/vector_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "spyre/layout/convert_simd.h"
#include "spyre/ops/formulas.h"

// Compiled again for each instruction set; see spyre/layout/convert_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "spyre/device/exec/vector_kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "spyre/layout/sen169-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spyre::exec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using spyre::HWY_NAMESPACE::fp32_bits_from_sen169;
using spyre::HWY_NAMESPACE::fp32_lower_half_from_sen169;
using spyre::HWY_NAMESPACE::fp32_upper_half_from_sen169;
using spyre::HWY_NAMESPACE::kSen169Fp32Rebias;
using spyre::HWY_NAMESPACE::sen169_from_fp32_bits;

using DFloat = hn::ScalableTag<float>;
using DBits = hn::RebindToSigned<DFloat>;
using DCode = hn::Rebind<uint16_t, DFloat>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(DFloat()));

// ---- Elements ----

HWY_INLINE hn::Vec<DFloat> load_codes(const uint16_t* from) {
  return hn::BitCast(DFloat(), fp32_bits_from_sen169(DCode(), DBits(), hn::LoadU(DCode(), from)));
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

// ---- Pairs: two vectors of numbers from one of codes ----

/// Elements that are widened and rounded at a time.
constexpr int kPair = 2 * kLanes;

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
// The cheap ways to take 16-bit lanes apart and to put them together again work inside blocks of 16 bytes,
// and one undoes the order of the other. A pair may stay in that order as long as only its own kind meets it:
//
//     memory       0 1 2 3   4 5 6 7 |  8  9 10 11  12 13 14 15 | ...
//     first        0 1 2 3 |  8  9 10 11 | ...
//     second       4 5 6 7 | 12 13 14 15 | ...

HWY_INLINE void load_pair(const uint16_t* codes, hn::Vec<DFloat>& first, hn::Vec<DFloat>& second) {
  const hn::ScalableTag<int16_t> d;
  const auto code = hn::LoadU(d, reinterpret_cast<const int16_t*>(codes));
  const auto lower = fp32_lower_half_from_sen169(d, code), upper = fp32_upper_half_from_sen169(d, code);
  first = hn::BitCast(DFloat(), hn::InterleaveLower(d, lower, upper));
  second = hn::BitCast(DFloat(), hn::InterleaveUpper(d, lower, upper));
}

HWY_INLINE void store_pair(hn::Vec<DFloat> first, hn::Vec<DFloat> second, uint16_t* codes) {
  const hn::ScalableTag<int16_t> d;
  const DBits wide;
  const auto absolute = hn::Set(wide, 0x7FFF'FFFF);
  const auto a = hn::BitCast(wide, first), b = hn::BitCast(wide, second);
  const auto low = hn::And(a, absolute), high = hn::And(b, absolute);
  // Saturation does the rest: what is too large becomes 0x7FFF, what is too small stays negative.
  const auto round = hn::Set(wide, (1 << 13) - kSen169Fp32Rebias);
  const auto magnitude = hn::Max(hn::ReorderDemote2To(d, hn::ShiftRight<14>(hn::Add(low, round)),
                                                      hn::ShiftRight<14>(hn::Add(high, round))),
                                 hn::Zero(d));
  auto sign = hn::ReorderDemote2To(d, a, b);  // saturated, too: only the sign is meant
  if (HWY_UNLIKELY(!hn::AllFalse(wide, hn::Gt(hn::Max(low, high), hn::Set(wide, 0x7F80'0000))))) {
    sign = hn::ReorderDemote2To(d, hn::IfThenZeroElse(hn::Gt(low, hn::Set(wide, 0x7F80'0000)), a),
                                hn::IfThenZeroElse(hn::Gt(high, hn::Set(wide, 0x7F80'0000)), b));
  }
  hn::StoreU(hn::Or(magnitude, hn::And(sign, hn::Set(d, INT16_MIN))), d, reinterpret_cast<int16_t*>(codes));
}

/// Brings a pair into the order of memory.
HWY_INLINE void sort_pair(float* part) {
  float mixed[kPair];
  std::memcpy(mixed, part, sizeof(mixed));
  for (int block = 0; block < kLanes / 4; ++block) {
    std::memcpy(part + 8 * block, mixed + 4 * block, 16);
    std::memcpy(part + 8 * block + 4, mixed + kLanes + 4 * block, 16);
  }
}
#else
HWY_INLINE void load_pair(const uint16_t* codes, hn::Vec<DFloat>& first, hn::Vec<DFloat>& second) {
  first = load_codes(codes);
  second = load_codes(codes + kLanes);
}
HWY_INLINE void store_pair(hn::Vec<DFloat> first, hn::Vec<DFloat> second, uint16_t* codes) {
  store_codes(first, codes);
  store_codes(second, codes + kLanes);
}
HWY_INLINE void sort_pair(float*) {}
#endif

/// A format: what a stick holds, as numbers of type T, kPart at a time. `load` and `store` agree on an order
/// of lanes, which need not be that of memory.
struct Sen169 {
  using T = float;
  static constexpr int kStick = 64, kPart = kPair;
  static HWY_INLINE void load(const std::byte* from, T* to) {
    hn::Vec<DFloat> first, second;
    load_pair(reinterpret_cast<const uint16_t*>(from), first, second);
    hn::StoreU(first, DFloat(), to);
    hn::StoreU(second, DFloat(), to + kLanes);
  }
  static HWY_INLINE void store(const T* from, std::byte* to) {
    store_pair(hn::LoadU(DFloat(), from), hn::LoadU(DFloat(), from + kLanes),
               reinterpret_cast<uint16_t*>(to));
  }
  /// One element, outside of the vector units, which have enough to do.
  static HWY_INLINE float number_of(const std::byte* from) {
    uint16_t code;
    std::memcpy(&code, from, sizeof(code));
    const uint32_t magnitude = code & 0x7FFFu;
    uint32_t bits = (magnitude << 14) + kSen169Fp32Rebias;
    bits = magnitude == 0 ? 0 : magnitude == 0x7FFF ? 0x7FC0'0000u : bits;
    return std::bit_cast<float>(bits | (code & 0x8000u) << 16);
  }
  static HWY_INLINE void splat(const std::byte* from, T* to) {
    const auto value = hn::Set(DFloat(), number_of(from));
    hn::StoreU(value, DFloat(), to);
    hn::StoreU(value, DFloat(), to + kLanes);
  }
};

struct Fp32 {
  using T = float;
  static constexpr int kStick = 32, kPart = 32;
  static HWY_INLINE void load(const std::byte* from, T* to) { std::memcpy(to, from, 128); }
  static HWY_INLINE void store(const T* from, std::byte* to) {
    uint32_t bits[kStick];
    std::memcpy(bits, from, 128);
    for (int i = 0; i < kStick; ++i) bits[i] = from[i] != from[i] ? 0x7FC0'0000u : bits[i];
    std::memcpy(to, bits, 128);
  }
  static HWY_INLINE void splat(const std::byte* from, T* to) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    std::fill_n(to, kPart, value);
  }
};

struct Int32 {
  using T = uint32_t;
  static constexpr int kStick = 32, kPart = 32;
  static HWY_INLINE void load(const std::byte* from, T* to) { std::memcpy(to, from, 128); }
  static HWY_INLINE void store(const T* from, std::byte* to) { std::memcpy(to, from, 128); }
  static HWY_INLINE void splat(const std::byte* from, T* to) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    std::fill_n(to, kPart, value);
  }
};

// ---- Moves ----

// On x86 the order of a pair is that of the two sticks: fours alternate.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
void split_stick(const std::byte* from, std::byte* first, std::byte* second) {
  for (int at = 0; at < 64; at += kPair) {
    hn::Vec<DFloat> a, b;
    load_pair(reinterpret_cast<const uint16_t*>(from) + at, a, b);
    hn::StoreU(without_nan_sign(a), DFloat(), reinterpret_cast<float*>(first) + at / 2);
    hn::StoreU(without_nan_sign(b), DFloat(), reinterpret_cast<float*>(second) + at / 2);
  }
}

void join_sticks(const std::byte* first, const std::byte* second, std::byte* to) {
  for (int at = 0; at < 64; at += kPair) {
    store_pair(hn::LoadU(DFloat(), reinterpret_cast<const float*>(first) + at / 2),
               hn::LoadU(DFloat(), reinterpret_cast<const float*>(second) + at / 2),
               reinterpret_cast<uint16_t*>(to) + at);
  }
}
#else
void split_stick(const std::byte* from, std::byte* first, std::byte* second) {
  alignas(64) float numbers[64];
  widen(from, numbers, 64);
  for (int at = 0; at < 64; at += kLanes) {
    hn::StoreU(without_nan_sign(hn::LoadU(DFloat(), numbers + at)), DFloat(), numbers + at);
  }
  for (int at = 0; at < 64; at += 8) {
    std::memcpy(first + at * 2, numbers + at, 16);
    std::memcpy(second + at * 2, numbers + at + 4, 16);
  }
}

void join_sticks(const std::byte* first, const std::byte* second, std::byte* to) {
  alignas(64) float numbers[64];
  for (int at = 0; at < 64; at += 8) {
    std::memcpy(numbers + at, first + at * 2, 16);
    std::memcpy(numbers + at + 4, second + at * 2, 16);
  }
  narrow(numbers, to, 64);
}
#endif

// ---- Pointwise ----

/// Bytes that are asked for before their turn: with so much to do for each, a processor looks ahead less far by itself.
constexpr int64_t kAhead = 2048;

/// `kSplats` has a bit for each input of which one element stands for the whole run; one function per choice,
/// so that the loop over a run neither asks nor loads them again.
template <class Format, class Row, unsigned kSplats = 0>
void pointwise_tile(const PointwiseTile& given) {
  const PointwiseTile tile = given;  // of our own: results cannot overwrite it
  constexpr int kInputs = Row::kInputs, kPart = Format::kPart;
  using T = typename Format::T;
  if constexpr (kSplats + 1 < (1u << kInputs)) {
    unsigned splats = 0;
    for (int i = 0; i < kInputs; ++i) splats |= tile.splat[i] ? 1u << i : 0;
    if (splats != kSplats) {
      return pointwise_tile<Format, Row, kSplats + 1>(given);
    }
  }
  constexpr int64_t kPartBytes = kPart * 128 / Format::kStick;
  alignas(64) T values[kInputs][kPart], out[kPart];
  T k[3];
  std::memcpy(k, tile.k, sizeof(k));
  const std::byte* in[kInputs];
  std::copy_n(tile.in, kInputs, in);
  std::byte* to = tile.out;
  const auto do_row = [&](int64_t bytes) HWY_ATTR {
    for (int i = 0; i < kInputs; ++i) {
      if (kSplats >> i & 1) Format::splat(in[i], values[i]);
    }
    for (int64_t at = 0; at < bytes; at += kPartBytes) {
      for (int i = 0; i < kInputs; ++i) {
        if (!(kSplats >> i & 1)) hwy::Prefetch(in[i] + at + kAhead);
      }
      if constexpr ((kSplats & 1) == 0) Format::load(in[0] + at, values[0]);
      if constexpr (kInputs > 1 && (kSplats & 2) == 0) Format::load(in[1] + at, values[1]);
      if constexpr (kInputs > 2 && (kSplats & 4) == 0) Format::load(in[2] + at, values[2]);
      for (int i = 0; i < kPart; ++i) {  // an input that the row lacks repeats its last one
        out[i] = Row::apply(values[0][i], values[std::min(1, kInputs - 1)][i],
                            values[std::min(2, kInputs - 1)][i], k);
      }
      Format::store(out, to + at);
    }
    for (int i = 0; i < kInputs; ++i) in[i] += tile.in_row[i];
    to += tile.out_row;
  };
  if (tile.run == Format::kStick) {  // as with a value per row: no loop inside the loop
    for (int64_t row = 0; row < tile.rows; ++row) do_row(128);
  } else {
    for (int64_t row = 0; row < tile.rows; ++row) do_row(tile.run / kPart * kPartBytes);
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
PointwiseKernel find_pointwise(OpId op, DataFormat format) {
  constexpr bool kFp16 = true, kFp32 = true, kInt32 = false;
#define SPYRE_POINTWISE(name, inputs, formats, constants, mask, meaning)                          \
  if (op == OpId::name) {                                                                         \
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

template <class Format, class Fold>
void fold_sticks(const FoldTile& tile, int64_t offset, float* acc) {
  constexpr int kStick = Format::kStick, kPart = Format::kPart;
  alignas(64) float value[kPart];
  for (int64_t i = 0; i < tile.count; ++i) {
    // Sticks of one result may lie pages apart, where no processor looks ahead by itself.
    const int64_t ahead = i + 1 < tile.count ? tile.stride : 0;
    for (int r = 0; r < tile.rows; ++r) {
      const std::byte* stick = tile.first[r] + offset + i * tile.stride;
      hwy::Prefetch(stick + ahead);
      hwy::Prefetch(stick + ahead + 64);
      for (int part = 0; part < kStick; part += kPart) {
        Format::load(stick + part * 128 / kStick, value);
        float* sum = acc + r * kStick + part;
        for (int lane = 0; lane < kPart; ++lane) {
          sum[lane] = Fold::apply(sum[lane], value[lane]);
        }
      }
    }
  }
}

/// Numbers of a stick from the order in which `Format::load` leaves them to that of memory.
HWY_INLINE void sort_lanes(Sen169, float* stick) {
  for (int part = 0; part < 64; part += kPair) {
    sort_pair(stick + part);
  }
}
HWY_INLINE void sort_lanes(Fp32, float*) {}

template <class Format>
void sort_folded(float* stick) {
  sort_lanes(Format(), stick);
}

template <class Format, class Fold>
float fold_lanes(const float* stick) {
  float lanes[Format::kStick];
  std::memcpy(lanes, stick, sizeof(lanes));
  for (int half = Format::kStick / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lanes[i] = Fold::apply(lanes[i], lanes[i + half]);
    }
  }
  return lanes[0];
}

template <class Format, class Fold>
FoldKernels fold_kernels() {
  return {
      .fold = fold_sticks<Format, Fold>, .sort = sort_folded<Format>, .fold_lanes = fold_lanes<Format, Fold>};
}

FoldKernels find_fold(OpId op, DataFormat format) {
#define SPYRE_REDUCTION(name, formats, constants, variants, mask, start, meaning)               \
  if (op == OpId::name) {                                                                       \
    if (format == DataFormat::SEN169_FP16) return fold_kernels<Sen169, Fold_##name>();          \
    return format == DataFormat::IEEE_FP32 ? fold_kernels<Fp32, Fold_##name>() : FoldKernels(); \
  }
#include "spyre/ops/table.def"
  return {};
}

struct Fold_squares {
  static HWY_INLINE float apply(float acc, float x) { return acc + x * x; }
};

FoldKernels find_fold_squares(DataFormat format) {
  FoldKernels found = find_fold(OpId::sum, format);  // lanes hold sums
  if (format == DataFormat::SEN169_FP16) found.fold = fold_sticks<Sen169, Fold_squares>;
  if (format == DataFormat::IEEE_FP32) found.fold = fold_sticks<Fp32, Fold_squares>;
  return found;
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

/// kV vectors of codes from column `first` on, in the order of pairs.
template <int kV>
HWY_INLINE void load_weights(const std::byte* row, int first, hn::Vec<DFloat>* v) {
  static_assert(kV % 2 == 0);
  const auto* codes = reinterpret_cast<const uint16_t*>(row) + first;
  for (int i = 0; i < kV; i += 2) {
    load_pair(codes + i * kLanes, v[i], v[i + 1]);
  }
}

void multiply_codes(const MatmulTile& t, const std::byte* w, int64_t stride) {
  // One row leaves registers for more columns, so that W passes once. More rows take several passes over the
  // columns: short ones, which find W in the cache.
  constexpr int kWide = std::min(kPanel / kLanes, 8);
  const int64_t depth = t.rows == 1 ? t.depth : 128;
  for (int64_t begin = 0; begin < t.depth; begin += depth) {
    MatmulTile pass = t;
    pass.x += begin;
    pass.depth = std::min(depth, t.depth - begin);
    pass.fresh = begin == 0;
    const std::byte* rows = w + begin * stride;
    const int columns = (t.rows == 1 ? kWide : kVectors) * kLanes;
    for (int first = 0; first < kPanel; first += columns) {
      if (t.rows == 1) {
        multiply_block<1, kWide>(pass, t.c + first, [&](int64_t k, hn::Vec<DFloat>* v) HWY_ATTR {
          load_weights<kWide>(rows + k * stride, first, v);
        });
      } else {
        with_rows(pass, t.c + first, [&](int64_t k, hn::Vec<DFloat>* v) HWY_ATTR {
          load_weights<kVectors>(rows + k * stride, first, v);
        });
      }
    }
  }
  for (int i = 0; i < t.rows * kPanel; i += kPair) {
    sort_pair(t.c + i);
  }
}

}  // namespace

VectorKernels kernels() {
  return {.name = hwy::TargetName(HWY_TARGET),
          .pointwise = find_pointwise,
          .fold = find_fold,
          .fold_squares = find_fold_squares,
          .widen = widen,
          .narrow = narrow,
          .split_stick = split_stick,
          .join_sticks = join_sticks,
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
  static const auto& kernels =
      *new std::vector<VectorKernels>(find_kernels());  // never destroyed: threads outlive `exit`
  return kernels;
}

}  // namespace spyre::exec
#endif  // HWY_ONCE
