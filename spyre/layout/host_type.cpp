#include "spyre/layout/host_type.h"

#include <array>

namespace spyre {
namespace {

// In the order of the enum.
constexpr std::array<HostTypeInfo, kHostTypeCount> kHostTypes = {{
    {"float16", 2, DataFormat::IEEE_FP16, DataFormat::SEN169_FP16},
    {"bfloat16", 2, DataFormat::BFLOAT16, DataFormat::SEN169_FP16},
    {"float32", 4, DataFormat::IEEE_FP32, DataFormat::IEEE_FP32},
    {"bool", 1, DataFormat::BOOL, DataFormat::SEN169_FP16},
    {"int8", 1, DataFormat::SENINT8, DataFormat::SENINT8},
    {"int16", 2, DataFormat::SENINT16, DataFormat::SENINT16},
    {"int32", 4, DataFormat::IEEE_INT32, DataFormat::IEEE_INT32},
    {"int64", 8, DataFormat::IEEE_INT64, DataFormat::IEEE_INT32},
    {"uint8", 1, DataFormat::SENUINT32, DataFormat::SENUINT32},
    {"float8_e4m3fn", 1, DataFormat::SEN143_FP8, DataFormat::SEN143_FP8},
    {"float8_e5m2fnuz", 1, DataFormat::SEN152_FP8, DataFormat::SEN152_FP8},
}};

}  // namespace

const HostTypeInfo& info_of(HostType type) {
  return kHostTypes[static_cast<size_t>(type)];
}

std::string_view to_string(HostType type) {
  return info_of(type).name;
}

std::optional<HostType> host_type_from_name(std::string_view name) {
  for (size_t i = 0; i < kHostTypes.size(); ++i) {
    if (kHostTypes[i].name == name) {
      return static_cast<HostType>(i);
    }
  }
  return std::nullopt;
}

}  // namespace spyre
