#include "spyre/layout/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "spyre/layout/convert_simd.h"
#include "spyre/layout/small_float.h"

namespace spyre {
namespace {

using enum DataFormat;

// ---- Elements, one at a time: the definition of every conversion ----

/// The number, or nothing where `To` cannot hold it.
template <typename To, typename From>
std::optional<To> fit(From value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

/// Toward zero. NaN fails both comparisons. The bounds are powers of two, hence exact as float.
template <typename To>
std::optional<To> truncate(float value) {
  const auto low = static_cast<float>(std::numeric_limits<To>::min());
  const float truncated = std::trunc(value);
  if (!(truncated >= low && truncated < -low)) return std::nullopt;
  return static_cast<To>(truncated);
}

template <Sen169Policy policy>
uint16_t fp16_to_sen169(uint16_t value) {
  return sen169_from_fp16(value, policy);
}
template <Sen169Policy policy>
uint16_t sen169_to_fp16(uint16_t code) {
  return fp16_from_sen169(code, policy);
}
template <typename To>
std::optional<To> sen169_to_integer(uint16_t code) {
  return truncate<To>(fp32_from_sen169(code));
}
uint16_t int16_to_sen169(int16_t value) {
  return sen169_from_int64(value);
}
uint8_t sen169_to_bool(uint16_t code) {
  return bool_from_sen169(code) ? 1 : 0;
}
uint16_t bool_to_sen169(uint8_t value) {
  return sen169_from_bool(value != 0);
}
uint8_t fp32_to_bool(float value) {
  return value != 0.0f ? 1 : 0;
}
uint16_t fp16_to_bf16(uint16_t value) {
  return bf16_from_fp32(fp32_from_fp16(value));
}
template <typename To, typename From>
To widen(From value) {
  return static_cast<To>(value);
}

// ---- Kernels made from them ----

template <typename T>
struct Image {
  using Type = T;
  static constexpr bool kCanFail = false;
};
template <typename T>
struct Image<std::optional<T>> {
  using Type = T;
  static constexpr bool kCanFail = true;
};

template <typename Src, auto kConvert>
using ImageOf = Image<std::invoke_result_t<decltype(kConvert), Src>>;

template <typename Src, auto kConvert>
int64_t convert_each(const std::byte* src, std::byte* dst, int64_t n) {
  using Dst = typename ImageOf<Src, kConvert>::Type;
  for (int64_t i = 0; i < n; ++i) {
    Src value;
    std::memcpy(&value, src + i * int64_t{sizeof(Src)}, sizeof(Src));
    const auto image = kConvert(value);
    Dst out;
    if constexpr (ImageOf<Src, kConvert>::kCanFail) {
      if (!image) return i;
      out = *image;
    } else {
      out = image;
    }
    std::memcpy(dst + i * int64_t{sizeof(Dst)}, &out, sizeof(Dst));
  }
  return n;
}

template <int kBytes>
int64_t copy_bytes(const std::byte* src, std::byte* dst, int64_t n) {
  if (n > 0) std::memcpy(dst, src, static_cast<size_t>(n * kBytes));
  return n;
}

struct KernelRow {
  Encoding src;
  Encoding dst;
  bool can_fail;
  ConvertKernel reference[2];  // by Sen169Policy
};

template <typename Src, auto kVendor, auto kPublished = kVendor>
constexpr KernelRow row(DataFormat src, DataFormat dst) {
  using Out = ImageOf<Src, kVendor>;
  return {.src = {src, sizeof(Src)},
          .dst = {dst, sizeof(typename Out::Type)},
          .can_fail = Out::kCanFail,
          .reference = {convert_each<Src, kVendor>, convert_each<Src, kPublished>}};
}

constexpr auto kVendor = Sen169Policy::kVendor;
constexpr auto kPublished = Sen169Policy::kPublished;

// Every legal pair of whole bytes that is not a copy. uint8 appears as SENUINT32 in one byte. All pairs are
// from the card's list except IEEE_FP32 -> BOOL: a comparison of fp32 operands leaves fp32 truth values on
// the card.
constexpr KernelRow kKernels[] = {
    row<float, saturated_sen169_from_fp32>(IEEE_FP32, SEN169_FP16),
    row<float, bf16_from_fp32>(IEEE_FP32, BFLOAT16),
    row<float, e4m3fn_from_fp32>(IEEE_FP32, SEN143_FP8),
    row<float, truncate<int8_t>>(IEEE_FP32, SENINT8),
    row<float, fp32_to_bool>(IEEE_FP32, BOOL),
    row<uint16_t, fp32_from_sen169>(SEN169_FP16, IEEE_FP32),
    row<uint16_t, sen169_to_integer<int16_t>>(SEN169_FP16, SENINT16),
    row<uint16_t, sen169_to_bool>(SEN169_FP16, BOOL),
    row<uint16_t, sen169_to_fp16<kVendor>, sen169_to_fp16<kPublished>>(SEN169_FP16, IEEE_FP16),
    row<uint16_t, sen169_to_integer<int64_t>>(SEN169_FP16, IEEE_INT64),
    row<uint16_t, bf16_from_sen169>(SEN169_FP16, BFLOAT16),
    row<uint16_t, fp32_from_fp16>(IEEE_FP16, IEEE_FP32),
    row<uint16_t, fp16_to_bf16>(IEEE_FP16, BFLOAT16),
    row<uint16_t, fp16_to_sen169<kVendor>, fp16_to_sen169<kPublished>>(IEEE_FP16, SEN169_FP16),
    row<uint16_t, fp32_from_bf16>(BFLOAT16, IEEE_FP32),
    row<uint16_t, sen169_from_bf16>(BFLOAT16, SEN169_FP16),
    row<uint8_t, fp32_from_e4m3fn>(SEN143_FP8, IEEE_FP32),
    row<int8_t, widen<float, int8_t>>(SENINT8, IEEE_FP32),
    row<int16_t, int16_to_sen169>(SENINT16, SEN169_FP16),
    row<uint8_t, bool_to_sen169>(BOOL, SEN169_FP16),
    row<int64_t, sen169_from_int64>(IEEE_INT64, SEN169_FP16),
    row<int64_t, fit<int32_t, int64_t>>(IEEE_INT64, IEEE_INT32),
    row<int64_t, fit<uint32_t, int64_t>>(IEEE_INT64, SENUINT32),
    row<int64_t, fit<uint8_t, int64_t>>(IEEE_INT64, SENUINT32),
    row<int32_t, widen<int64_t, int32_t>>(IEEE_INT32, IEEE_INT64),
    row<uint32_t, widen<int64_t, uint32_t>>(SENUINT32, IEEE_INT64),
    row<uint8_t, widen<int64_t, uint8_t>>(SENUINT32, IEEE_INT64),
    row<uint8_t, widen<uint32_t, uint8_t>>(SENUINT32, SENUINT32),
    row<uint32_t, fit<uint8_t, uint32_t>>(SENUINT32, SENUINT32),
};

struct FormatPair {
  DataFormat src;
  DataFormat dst;
};

// Legal too, but of less than a byte on one side: no kernel.
constexpr FormatPair kNarrowPairs[] = {
    {IEEE_FP32, SENINT4}, {IEEE_FP32, SENUINT2}, {SENINT4, IEEE_FP32}, {SENUINT2, IEEE_FP32}};

ConvertKernel copy_kernel(int bytes) {
  switch (bytes) {
    case 1:
      return copy_bytes<1>;
    case 2:
      return copy_bytes<2>;
    case 4:
      return copy_bytes<4>;
    case 8:
      return copy_bytes<8>;
    default:
      return nullptr;
  }
}

const KernelRow* find_row(Encoding src, Encoding dst) {
  const auto* found =
      std::ranges::find_if(kKernels, [&](const KernelRow& r) { return r.src == src && r.dst == dst; });
  return found == std::end(kKernels) ? nullptr : found;
}

// ---- Errors ----

std::string names_of_destinations(DataFormat src) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kDataFormatCount; ++i) {
    const auto dst = static_cast<DataFormat>(i);
    if (is_allowed_conversion(src, dst)) names.push_back(to_string(dst));
  }
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

Error unsupported_pair(DataFormat src, DataFormat dst, HostType host, DataFormat device) {
  return Error(ErrorKind::kUnsupported,
               fmt::format("Unsupported DCI data format conversion: src={} dst={} (cpu_type={}, dev_type={})",
                           to_string(src), to_string(dst), to_string(host), to_string(device)))
      .note(fmt::format("{} can become {}", to_string(src), names_of_destinations(src)))
      .try_instead("converting on the CPU first, with .to(dtype)");
}

Error narrower_than_a_byte(DataFormat src, DataFormat dst) {
  return Error(ErrorKind::kUnsupported,
               fmt::format(
                   "Conversion {} -> {} is legal for the card but not implemented: its elements are narrower "
                   "than a byte",
                   to_string(src), to_string(dst)))
      .try_instead("a format of 8 bits or more");
}

std::string value_text(const std::byte* src, Encoding encoding) {
  const auto load = [src]<typename T>(T value) {
    std::memcpy(&value, src, sizeof(T));
    return value;
  };
  switch (encoding.format) {
    case IEEE_FP32:
      return fmt::format("{}", load(float{}));
    case SEN169_FP16:
      return fmt::format("{}", fp32_from_sen169(load(uint16_t{})));
    case IEEE_INT64:
      return fmt::format("{}", load(int64_t{}));
    case SENUINT32:
      return fmt::format("{}", load(uint32_t{}));
    default:
      SPYRE_CHECK(false, "only conversions that can fail have misfits");
      return {};
  }
}

std::string range_text(Encoding encoding) {
  const auto range = []<typename T>(T) {
    return fmt::format("{} .. {} in {} byte{}", int64_t{std::numeric_limits<T>::min()},
                       int64_t{std::numeric_limits<T>::max()}, sizeof(T), sizeof(T) == 1 ? "" : "s");
  };
  switch (encoding.format) {
    case SENINT8:
      return range(int8_t{});
    case SENINT16:
      return range(int16_t{});
    case IEEE_INT32:
      return range(int32_t{});
    case IEEE_INT64:
      return range(int64_t{});
    case SENUINT32:
      return encoding.bytes == 1 ? range(uint8_t{}) : range(uint32_t{});
    default:
      SPYRE_CHECK(false, "only conversions that can fail have misfits");
      return {};
  }
}

// ---- Strides ----

// Elements pass through a small dense buffer on the side that has gaps, so the one dense kernel of a pair
// serves every stride. 256 elements of up to 8 bytes, twice: 4 KiB, well inside the first-level cache.
constexpr int64_t kBlock = 256;

template <typename T>
void gather(const std::byte* src, int64_t stride, std::byte* dense, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(dense + i * int64_t{sizeof(T)}, src + i * stride, sizeof(T));
}
template <typename T>
void scatter(const std::byte* dense, std::byte* dst, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * stride, dense + i * int64_t{sizeof(T)}, sizeof(T));
}

void gather(int bytes, const std::byte* src, int64_t stride, std::byte* dense, int64_t n) {
  switch (bytes) {
    case 1:
      return gather<uint8_t>(src, stride, dense, n);
    case 2:
      return gather<uint16_t>(src, stride, dense, n);
    case 4:
      return gather<uint32_t>(src, stride, dense, n);
    default:
      return gather<uint64_t>(src, stride, dense, n);
  }
}
void scatter(int bytes, const std::byte* dense, std::byte* dst, int64_t stride, int64_t n) {
  switch (bytes) {
    case 1:
      return scatter<uint8_t>(dense, dst, stride, n);
    case 2:
      return scatter<uint16_t>(dense, dst, stride, n);
    case 4:
      return scatter<uint32_t>(dense, dst, stride, n);
    default:
      return scatter<uint64_t>(dense, dst, stride, n);
  }
}

}  // namespace

Encoding host_encoding(HostType type) {
  return {info_of(type).host_format, info_of(type).host_bytes};
}

Encoding device_encoding(DataFormat format) {
  const bool whole_bytes = elems_per_stick(format) != 0 && bits_of(format) % 8 == 0;
  return {format, whole_bytes ? bits_of(format) / 8 : 0};
}

bool is_allowed_conversion(DataFormat src, DataFormat dst) {
  if (src == dst) return elems_per_stick(src) != 0;
  const auto has_kernel = [&](const KernelRow& r) { return r.src.format == src && r.dst.format == dst; };
  const auto is_narrow = [&](FormatPair p) { return p.src == src && p.dst == dst; };
  return std::ranges::any_of(kKernels, has_kernel) || std::ranges::any_of(kNarrowPairs, is_narrow);
}

Result<Convert> find_conversion(HostType host, DataFormat device, Direction direction, Sen169Policy policy,
                                ConvertPath path) {
  Encoding src = host_encoding(host);
  Encoding dst = device_encoding(device);
  if (direction == Direction::kDeviceToHost) std::swap(src, dst);
  if (!is_allowed_conversion(src.format, dst.format)) {
    return unsupported_pair(src.format, dst.format, host, device);
  }
  if (src.bytes == 0 || dst.bytes == 0) return narrower_than_a_byte(src.format, dst.format);
  if (src == dst) return Convert(src, dst, copy_kernel(src.bytes), /*can_fail=*/false);
  const KernelRow* row = find_row(src, dst);
  SPYRE_CHECK(row != nullptr, "every legal pair of whole bytes has a kernel");
  const ConvertKernel reference = row->reference[static_cast<size_t>(policy)];
  const ConvertKernel fast =
      path == ConvertPath::kFast ? simd_targets().front().find(src, dst, policy) : nullptr;
  return Convert(src, dst, fast != nullptr ? fast : reference, row->can_fail);
}

int64_t Convert::run_strided(const std::byte* src, int64_t src_stride_bytes, std::byte* dst,
                             int64_t dst_stride_bytes, int64_t n) const {
  const bool src_dense = src_stride_bytes == src_.bytes;
  const bool dst_dense = dst_stride_bytes == dst_.bytes;
  if (src_dense && dst_dense) return run(src, dst, n);
  alignas(64) std::array<std::byte, kBlock * 8> gathered;
  alignas(64) std::array<std::byte, kBlock * 8> converted;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    const std::byte* from = src + begin * src_stride_bytes;
    std::byte* to = dst + begin * dst_stride_bytes;
    if (!src_dense) gather(src_.bytes, from, src_stride_bytes, gathered.data(), count);
    const int64_t done = run(src_dense ? from : gathered.data(), dst_dense ? to : converted.data(), count);
    if (!dst_dense) scatter(dst_.bytes, converted.data(), to, dst_stride_bytes, done);
    if (done < count) return begin + done;
  }
  return n;
}

Error Convert::misfit(const std::byte* src) const {
  return Error(ErrorKind::kOutOfRange,
               fmt::format("Value {} does not fit {}, which holds {}", value_text(src, src_),
                           to_string(dst_.format), range_text(dst_)))
      .note(fmt::format("while converting {} to {}", to_string(src_.format), to_string(dst_.format)))
      .try_instead("clamping the values first, or a wider type");
}

}  // namespace spyre
