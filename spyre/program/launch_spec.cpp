#include "spyre/program/launch_spec.h"

#include <fmt/format.h>

#include "spyre/base/json.h"
#include "spyre/program/fields.h"
#include "spyre/program/sdsc_record.h"

namespace spyre::program {
namespace {

constexpr int64_t kSpecVersion = 1;
constexpr size_t kMaxArgs = 4096;

Status read_layout(const Field& field, LaunchArg& arg) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> sizes, field.find("device_size"));
  if (sizes) {
    SPYRE_ASSIGN_OR_RETURN(const auto list, sizes->elements(kMaxDims + 1));
    for (const Field& size : list) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, size.integer(0, kMaxExtent));
      arg.device_size.push_back(value);
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> strides, field.find("stride_map"));
  if (strides) {
    SPYRE_ASSIGN_OR_RETURN(const auto list, strides->elements(kMaxDims + 1));
    for (const Field& stride : list) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, stride.integer(-1, INT64_MAX));
      arg.stride_map.push_back(value);
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> format, field.find("device_dtype"));
  if (format) {
    SPYRE_ASSIGN_OR_RETURN(const std::string name, format->text());
    arg.device_format = data_format_from_name(name.substr(name.rfind('.') + 1));
    if (!arg.device_format) {
      return format->refuse_value("the name of a data format");
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> arrangement, field.find("element_arrangement"));
  if (arrangement) {
    SPYRE_ASSIGN_OR_RETURN(const std::string name, arrangement->text());
    const auto known = element_arrangement_from_name(name.substr(name.rfind('.') + 1));
    if (!known) {
      return arrangement->refuse_value("the name of an element arrangement");
    }
    arg.arrangement = *known;
  }
  return Status();
}

/// Where in its storage the host view lies.
Status read_host_view(const Field& field, LaunchArg& arg) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> strides, field.find("stride"));
  if (strides) {
    SPYRE_ASSIGN_OR_RETURN(const auto list, strides->elements(kMaxDims));
    for (const Field& stride : list) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t value, stride.integer(0, kMaxExtent));
      arg.stride.push_back(value);
    }
    if (arg.stride.size() != arg.shape.size()) {
      return strides->refuse_value(fmt::format("{} strides, one for each size", arg.shape.size()));
    }
  }
  SPYRE_ASSIGN_OR_RETURN(arg.offset, optional_integer(field, "offset", 0, kMaxExtent, 0));
  SPYRE_ASSIGN_OR_RETURN(arg.storage, optional_integer(field, "storage", 0, kMaxExtent, 0));
  return Status();
}

Status read_fill(const Field& field, LaunchArg& arg) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> fill, field.find("fill"));
  if (fill.has_value() != (arg.role == "constant")) {
    return field.refuse(fmt::format("the role '{}' {} a fill", arg.role, fill ? "with" : "without"),
                        "a constant with its fill; a fill with nothing else");
  }
  if (fill) {
    Fill& out = arg.fill.emplace();
    SPYRE_ASSIGN_OR_RETURN(const Field start, fill->at("start"));
    SPYRE_ASSIGN_OR_RETURN(out.start, start.number());
    SPYRE_ASSIGN_OR_RETURN(const Field step, fill->at("step"));
    SPYRE_ASSIGN_OR_RETURN(out.step, step.number());
  }
  return Status();
}

Result<LaunchArg> read_arg(const Field& field) {
  LaunchArg arg;
  SPYRE_ASSIGN_OR_RETURN(const Field index, field.at("arg_index"));
  SPYRE_ASSIGN_OR_RETURN(const int64_t number, index.integer(0, 1 << 20));
  arg.arg_index = static_cast<int>(number);
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> role, field.find("role"));
  if (role) {
    SPYRE_ASSIGN_OR_RETURN(arg.role, role->text());
    if (arg.role != "input" && arg.role != "output" && arg.role != "input_output" && arg.role != "constant") {
      return role->refuse_value("input, output, input_output or constant");
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> shape, field.find("shape"));
  if (shape) {
    SPYRE_ASSIGN_OR_RETURN(const auto sizes, shape->elements(kMaxDims));
    for (const Field& size : sizes) {
      if (size.json().is_string()) {
        arg.shape.emplace_back(size.json().get<std::string>());
      } else {
        SPYRE_ASSIGN_OR_RETURN(const int64_t value, size.integer(0, kMaxExtent));
        arg.shape.emplace_back(value);
      }
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> dtype, field.find("dtype"));
  if (dtype) {
    SPYRE_ASSIGN_OR_RETURN(arg.dtype, dtype->text());
  }
  SPYRE_TRY(read_host_view(field, arg));
  SPYRE_TRY(read_fill(field, arg));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> layout, field.find("layout"));
  if (layout) {
    SPYRE_TRY(read_layout(*layout, arg));
  }
  return arg;
}

}  // namespace

Result<LaunchSpec> read_launch_spec(const Json& json, const std::string& file) {
  const Field root(file, json);
  SPYRE_ASSIGN_OR_RETURN(const Field version, root.at("version"));
  SPYRE_ASSIGN_OR_RETURN(const int64_t number, version.integer(1, INT64_MAX));
  if (number > kSpecVersion) {
    return version.refuse(std::to_string(number),
                          fmt::format("{}; a newer front end wrote this", kSpecVersion),
                          ErrorKind::kUnsupported);
  }
  LaunchSpec spec;
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> name, root.find("kernel_name"));
  if (name) {
    SPYRE_ASSIGN_OR_RETURN(spec.kernel_name, name->text());
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> pool, root.find("pool_size"));
  if (pool) {
    SPYRE_ASSIGN_OR_RETURN(spec.pool_size, pool->integer(0, int64_t{16} << 30));
  }
  SPYRE_ASSIGN_OR_RETURN(const Field args, root.at("args"));
  SPYRE_ASSIGN_OR_RETURN(const auto list, args.elements(kMaxArgs));
  for (const Field& field : list) {
    SPYRE_ASSIGN_OR_RETURN(LaunchArg arg, read_arg(field));
    spec.args.push_back(std::move(arg));
  }
  return spec;
}

}  // namespace spyre::program
