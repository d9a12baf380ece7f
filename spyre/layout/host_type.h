#pragma once

#include <optional>
#include <string_view>

#include "spyre/arch/data_format.h"

namespace spyre {

/// The element types a PyTorch tensor on the host may have when it travels to or from the card.
///
/// Each is one row of a table: how wide an element is on the host, how it is encoded there, and which
/// encoding the card gives it when the tensor moves with `.to("spyre")` and no other wish.
///
///     type              host bytes  host format  device format  device bytes
///     float16                    2  IEEE_FP16    SEN169_FP16               2   lossy: one fraction bit less
///     bfloat16                   2  BFLOAT16     SEN169_FP16               2   lossy: smaller range
///     float32                    4  IEEE_FP32    IEEE_FP32                 4
///     bool                       1  BOOL         SEN169_FP16               2   0.0 or 1.0
///     int8                       1  SENINT8      SENINT8                   1
///     int16                      2  SENINT16     SENINT16                  2
///     int32                      4  IEEE_INT32   IEEE_INT32                4
///     int64                      8  IEEE_INT64   IEEE_INT32                4   values must fit
///     uint8                      1  SENUINT32    SENUINT32                 4   same format, two widths
///     float8_e4m3fn              1  SEN143_FP8   SEN143_FP8                1
///     float8_e5m2fnuz            1  SEN152_FP8   SEN152_FP8                1
///
/// The width on the host is not always the width of the host format: uint8 is called SENUINT32 on both sides
/// but takes one byte on the host. Whoever walks host memory asks `host_bytes`, never `bits_of(host_format)`.
///
/// float64, complex and plain float8_e5m2 have no row, because the card has no place for them.
enum class HostType : uint8_t {
  kFloat16,
  kBFloat16,
  kFloat32,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kFloat8E4M3FN,
  kFloat8E5M2FNUZ,
};
inline constexpr int kHostTypeCount = static_cast<int>(HostType::kFloat8E5M2FNUZ) + 1;

struct HostTypeInfo {
  std::string_view name;     ///< PyTorch's, without the module: `float16`
  int host_bytes;            ///< width of one element in host memory
  DataFormat host_format;    ///< what the descriptor of a transfer calls it on the host side
  DataFormat device_format;  ///< what it becomes on the card unless a layout says otherwise
};

const HostTypeInfo& info_of(HostType type);
std::string_view to_string(HostType type);
std::optional<HostType> host_type_from_name(std::string_view name);

}  // namespace spyre
