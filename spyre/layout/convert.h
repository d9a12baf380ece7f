#pragma once

#include <cstddef>
#include <cstdint>

#include "spyre/arch/data_format.h"
#include "spyre/base/result.h"
#include "spyre/layout/host_type.h"
#include "spyre/layout/sen169.h"

namespace spyre {

/// Which way a tensor travels, and so which side of a conversion is the source.
enum class Direction : uint8_t { kHostToDevice, kDeviceToHost };

/// How elements lie in memory: their format and their stride when packed densely.
/// The two are separate because uint8 is SENUINT32 in one byte on the host and in four on the card.
struct Encoding {
  DataFormat format;
  int bytes;

  friend bool operator==(const Encoding&, const Encoding&) = default;
};

/// One element type on the host; one format on the card.
Encoding host_encoding(HostType type);
/// `bytes` is 0 for a format narrower than a byte or without stick geometry.
Encoding device_encoding(DataFormat format);

/// Converts n densely packed elements and returns how many it converted: n, or the index of the first element
/// that has no image in the destination. Neither pointer needs alignment; the ranges must not overlap.
using ConvertKernel = int64_t (*)(const std::byte* src, std::byte* dst, int64_t n);

/// Which code does the work. `kReference` is one element at a time from the definitions; `kFast` uses vectors
/// where they help and gives the same bits.
enum class ConvertPath : uint8_t { kFast, kReference };

/// Converts elements while a tensor is staged for the card, or read back from it.
///
/// Pack and unpack decide *where* an element goes; a `Convert` decides *what* it becomes. They find it once
/// for a transfer and run it over every row of every loop nest:
///
///     using enum Direction;
///     SPYRE_ASSIGN_OR_RETURN(const Convert convert,
///                            find_conversion(HostType::kFloat16, DataFormat::SEN169_FP16, kHostToDevice));
///     const int64_t done = convert.run(src, dst, 64);
///     if (done < 64) return convert.misfit(src + done * convert.src_bytes());
///
/// ## Which pairs are legal
///
/// Those the card's host library lists, by format, source -> destination:
///
///     IEEE_FP32    -> IEEE_FP32 SEN169_FP16 BFLOAT16 SEN143_FP8 SENINT4* SENINT8 SENUINT2*
///     SEN169_FP16  -> IEEE_FP32 SEN169_FP16 SENINT16 BOOL IEEE_FP16 IEEE_INT64 BFLOAT16
///     IEEE_FP16    -> IEEE_FP32 BFLOAT16 SEN169_FP16
///     BFLOAT16     -> IEEE_FP32 SEN169_FP16
///     SEN143_FP8   -> IEEE_FP32 SEN143_FP8
///     SENINT4*     -> IEEE_FP32 SENINT4           SENINT8   -> IEEE_FP32 SENINT8      SENUINT2* -> IEEE_FP32
///     SENINT16     -> SEN169_FP16                 BOOL      -> SEN169_FP16
///     IEEE_INT64   -> SEN169_FP16 IEEE_INT32 SENUINT32
///     IEEE_INT32   -> IEEE_INT64 IEEE_INT32       SENUINT32 -> IEEE_INT64 SENUINT32
///
/// and two additions of ours: any format that fills a stick evenly may be copied to itself (so int16 and
/// float8_e5m2fnuz round trip), and IEEE_FP32 -> BOOL (so the fp32 result of a comparison can be read).
///
/// (*) No PyTorch type we map is narrower than a byte, so these pairs are legal by the table but have no
/// kernel: `find_conversion` says so instead of guessing how nibbles are ordered.
///
/// ## What the values become
///
///  - float -> float: see `sen169.h` and `small_float.h`.
///  - integer -> integer: the same number. Where it does not fit the run stops and says where; nothing wraps.
///  - float -> integer: the fraction is dropped (toward zero). NaN and what does not fit stop the run.
///  - integer -> SEN169: rounded once; see `sen169_from_int64`. Saturates beyond the range, as any float does.
///  - to BOOL: 1 for everything but zero. From BOOL: any byte but 0 counts as true.
///
/// A Convert is small, copyable, immutable, and safe to run from several threads.
class Convert {
 public:
  Convert(Encoding src, Encoding dst, ConvertKernel kernel, bool can_fail)
      : src_(src), dst_(dst), kernel_(kernel), can_fail_(can_fail) {}

  int src_bytes() const { return src_.bytes; }
  int dst_bytes() const { return dst_.bytes; }
  /// True when some element may have no image, so that `run` may return less than n.
  bool can_fail() const { return can_fail_; }
  /// True when the bytes are the same on both sides: a caller may merge rows and use memcpy.
  bool is_copy() const { return src_ == dst_; }

  /// Converts n adjacent elements. Returns n, or the index of the first one that does not fit; the elements
  /// before it have been written, what lies from there on in dst is unspecified.
  [[nodiscard]] int64_t run(const std::byte* src, std::byte* dst, int64_t n) const {
    return kernel_(src, dst, n);
  }

  /// The same with a distance in bytes from one element to the next on each side. A source stride of 0
  /// repeats one element. Bytes of dst between the elements are left alone.
  [[nodiscard]] int64_t run_strided(const std::byte* src, int64_t src_stride_bytes, std::byte* dst,
                                    int64_t dst_stride_bytes, int64_t n) const;

  /// The error for the element at `src` on which a run stopped: its value and what would fit.
  Error misfit(const std::byte* src) const;

 private:
  Encoding src_;
  Encoding dst_;
  ConvertKernel kernel_;
  bool can_fail_;
};

/// True when the table above, additions included, has the pair.
bool is_allowed_conversion(DataFormat src, DataFormat dst);

/// The conversion between a host tensor and the card. Refuses pairs that are not in the table with a message
/// that starts `Unsupported DCI data format conversion: src=.. dst=..`.
Result<Convert> find_conversion(HostType host, DataFormat device, Direction direction,
                                Sen169Policy policy = Sen169Policy::kPublished,
                                ConvertPath path = ConvertPath::kFast);

}  // namespace spyre
