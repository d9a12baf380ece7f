#include "glue/dtype.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <utility>

#include "glue/error.h"
#include "spyre/base/settings.h"

namespace spyre::glue {
namespace {

constexpr std::array<std::pair<c10::ScalarType, HostType>, kHostTypeCount> kTypes = {{
    {c10::kHalf, HostType::kFloat16},
    {c10::kBFloat16, HostType::kBFloat16},
    {c10::kFloat, HostType::kFloat32},
    {c10::kBool, HostType::kBool},
    {c10::kChar, HostType::kInt8},
    {c10::kShort, HostType::kInt16},
    {c10::kInt, HostType::kInt32},
    {c10::kLong, HostType::kInt64},
    {c10::kByte, HostType::kUInt8},
    {c10::kFloat8_e4m3fn, HostType::kFloat8E4M3FN},
    {c10::kFloat8_e5m2fnuz, HostType::kFloat8E5M2FNUZ},
}};

std::atomic<int>& warning_override() {
  static std::atomic<int> value{-1};  // -1: the setting decides
  return value;
}

}  // namespace

std::optional<HostType> try_host_type(c10::ScalarType dtype) {
  for (const auto& [torch_type, host_type] : kTypes) {
    if (torch_type == dtype) {
      return host_type;
    }
  }
  return std::nullopt;
}

HostType host_type_of(c10::ScalarType dtype) {
  const auto type = try_host_type(dtype);
  TORCH_CHECK(type.has_value(), "Spyre backend does not support dtype ", dtype,
              "\n  note the card holds float16, bfloat16, float32, bool, int8, int16, int32, int64 (as "
              "int32), uint8, "
              "float8_e4m3fn and float8_e5m2fnuz",
              "\n  try  .to(torch.float32) or .to(torch.float16) on the CPU first");
  return *type;
}

c10::ScalarType dtype_of(HostType type) {
  for (const auto& [torch_type, host_type] : kTypes) {
    if (host_type == type) {
      return torch_type;
    }
  }
  TORCH_INTERNAL_ASSERT(false, "a HostType without a PyTorch dtype");
}

bool downcast_warning() {
  const int value = warning_override().load();
  return value == -1 ? unwrap(read_bool("TORCH_SPYRE_DOWNCAST_WARN")) : value != 0;
}

void set_downcast_warning(bool enabled) {
  warning_override().store(enabled ? 1 : 0);
}

void warn_downcast_once() {
  static std::atomic<bool> warned{false};
  if (downcast_warning() && !warned.exchange(true)) {
    TORCH_WARN(
        "Backend Spyre does not support int64; downcasting to int32. A value that does not fit is an error. ",
        "Silence this with torch.spyre.set_downcast_warning(False) or TORCH_SPYRE_DOWNCAST_WARN=0.");
  }
}

}  // namespace spyre::glue
