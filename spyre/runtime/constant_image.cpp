#include "spyre/runtime/constant_image.h"

#include <fmt/format.h>

#include "spyre/layout/number_policy.h"
#include "spyre/layout/pack.h"

namespace spyre {
namespace {

/// What one core reaches of a tensor; no operation could read more.
constexpr int64_t kMostBytes = int64_t{256} << 20;

Error refuse(const program::LaunchArg& arg, const std::string& found, std::string_view allowed) {
  return Error(
      ErrorKind::kInvalidArgument,
      fmt::format("launch_spec.json: constant {}: found {}, allowed: {}", arg.arg_index, found, allowed));
}

Result<std::vector<int64_t>> fixed_shape(const program::LaunchArg& arg) {
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (const auto& size : arg.shape) {
    const auto* fixed = std::get_if<int64_t>(&size);
    if (fixed == nullptr) return refuse(arg, "the extent " + std::get<std::string>(size), "fixed sizes");
    shape.push_back(*fixed);
    if (__builtin_mul_overflow(elements, *fixed, &elements) || elements > kMostBytes) {
      return refuse(arg, "a shape of more elements", fmt::format("{} bytes at most", kMostBytes));
    }
  }
  return shape;
}

}  // namespace

Result<std::vector<std::byte>> constant_image(const program::LaunchArg& arg) {
  const std::optional<HostType> type = host_type_from_name(arg.dtype);
  if (!type || !arg.device_format || arg.device_size.empty()) {
    return refuse(arg,
                  fmt::format("dtype '{}' and {} layout", arg.dtype, arg.device_size.empty() ? "no" : "a"),
                  "a dtype of the card and a whole layout");
  }
  SPYRE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, fixed_shape(arg));
  const DeviceLayout layout =
      DeviceLayout::raw(arg.device_size, arg.stride_map, *arg.device_format, arg.arrangement);
  SPYRE_TRY(layout.check_well_formed());
  SPYRE_ASSIGN_OR_RETURN(const Bytes size, layout.byte_size());
  if (size.count() > kMostBytes) {
    return refuse(arg, fmt::format("{} bytes", size.count()), fmt::format("{} at most", kMostBytes));
  }
  SPYRE_ASSIGN_OR_RETURN(const Sen169Policy policy, number_policy_setting());
  const int64_t row = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  // The compiler calls every constant in 16 bits float16; the card holds more than that can name.
  const bool in_16_bits = *arg.device_format == DataFormat::SEN169_FP16 && *type != HostType::kBool;
  const HostType staged = in_16_bits ? HostType::kFloat32 : *type;
  const std::vector<std::byte> host = filled_elements(*arg.fill, staged, numel_of(shape), row);
  std::vector<std::byte> image(static_cast<size_t>(size.count()));
  const std::vector<int64_t> strides = arg.stride.empty() ? contiguous_strides(shape) : arg.stride;
  SPYRE_TRY(pack(ConstHostBuffer{host.data(), staged, shape, contiguous_strides(shape)}, layout,
                 ViewGeometry::whole(shape, strides), image, policy));
  return image;
}

}  // namespace spyre
