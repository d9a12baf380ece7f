#include "spyre/forms/promotion.h"

#include <fmt/format.h>

#include <array>

#include "spyre/forms/form.h"

namespace spyre::forms {
namespace {

bool is_float8(HostType type) {
  return type == HostType::kFloat8E4M3FN || type == HostType::kFloat8E5M2FNUZ;
}

int bytes_of(HostType type) {
  return info_of(type).host_bytes;
}

HostType type_of(const Promoted& operand, HostType default_float) {
  if (operand.dtype) {
    return *operand.dtype;
  }
  switch (operand.kind) {
    case Number::Kind::kBool:
      return HostType::kBool;
    case Number::Kind::kInt:
      return HostType::kInt64;
    case Number::Kind::kFloat:
      return default_float;
  }
  return default_float;
}

Result<std::optional<HostType>> wider(std::optional<HostType> a, std::optional<HostType> b) {
  if (!a || !b) {
    return a ? a : b;
  }
  SPYRE_ASSIGN_OR_RETURN(const HostType both, promote(*a, *b));
  return std::optional(both);
}

/// A lower category changes the kind of a higher one, never its width.
Result<std::optional<HostType>> combined(std::optional<HostType> higher, std::optional<HostType> lower) {
  if (higher && is_float(*higher)) {
    return higher;
  }
  if ((higher && *higher == HostType::kBool) || (lower && is_float(*lower))) {
    return wider(higher, lower);
  }
  return higher ? higher : lower;
}

}  // namespace

Result<HostType> promote(HostType a, HostType b) {
  if (a == b) {
    return a;
  }
  if (is_float8(a) || is_float8(b)) {
    return refuse(fmt::format("PyTorch has no common type for {} and {}", to_string(a), to_string(b)));
  }
  if (a == HostType::kBool || b == HostType::kBool) {
    return a == HostType::kBool ? b : a;
  }
  if (is_float(a) != is_float(b)) {
    return is_float(a) ? a : b;
  }
  if (bytes_of(a) != bytes_of(b)) {
    return bytes_of(a) > bytes_of(b) ? a : b;
  }
  // Of one width and yet different: fp16 and bfloat16, int8 and uint8.
  return is_float(a) ? HostType::kFloat32 : HostType::kInt16;
}

Result<HostType> promote(std::span<const Promoted> operands, HostType default_float) {
  std::array<std::optional<HostType>, 3> found;
  for (const Promoted& operand : operands) {
    std::optional<HostType>& category = found[static_cast<size_t>(operand.category)];
    SPYRE_ASSIGN_OR_RETURN(category, wider(category, type_of(operand, default_float)));
  }
  SPYRE_ASSIGN_OR_RETURN(const auto lower, combined(found[1], found[2]));
  SPYRE_ASSIGN_OR_RETURN(const auto type, combined(found[0], lower));
  SPYRE_CHECK(type.has_value(), "at least one operand");
  return *type;
}

}  // namespace spyre::forms
