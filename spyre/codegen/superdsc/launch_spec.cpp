// What the caller must pass, and what each parameter of the bundle is.

#include <cmath>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/bundle_program.h"

namespace spyre::superdsc {
namespace {

constexpr int kLaunchSpecVersion = 1;

Json shape_json(const std::vector<SizeOrSymbol>& shape) {
  Json out = Json::array();
  for (const SizeOrSymbol& size : shape) {
    std::visit([&](const auto& value) { out.push_back(value); }, size);
  }
  return out;
}

std::string_view kind_name(Parameter::Kind kind) {
  switch (kind) {
    case Parameter::Kind::kPool:
      return "pool";
    case Parameter::Kind::kKernel:
      return "kernel";
    case Parameter::Kind::kDimension:
      return "dimension";
    case Parameter::Kind::kLoopDimension:
      return "loop_dimension";
  }
  return "unknown";
}

// JSON has no word for these.
Json number_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json argument_json(const LaunchArgument& arg) {
  Json out = {{"arg_index", arg.index},
              {"role", to_string(arg.role)},
              {"shape", shape_json(arg.shape)},
              {"dtype", arg.dtype}};
  if (!arg.stride.empty()) out["stride"] = arg.stride;
  if (arg.offset != 0) out["offset"] = arg.offset;
  if (arg.storage != 0) out["storage"] = arg.storage;
  if (arg.fill)
    out["fill"] = {{"start", number_json(arg.fill->start)}, {"step", number_json(arg.fill->step)}};
  out["layout"] = {{"device_size", arg.device_size},
                   {"stride_map", arg.stride_map},
                   {"device_dtype", to_string(arg.format)},
                   {"element_arrangement", to_string(arg.arrangement)}};
  return out;
}

Json symbol_json(const Symbol& symbol, int64_t id) {
  Json out = {{"id", id}, {"kind", to_string(symbol.kind)}};
  if (symbol.kind == SymbolKind::kDimension) {
    out["symbol"] = symbol.dimension;
    return out;
  }
  if (symbol.arg_index >= 0) out["arg_index"] = symbol.arg_index;
  out["offset"] = symbol.offset;
  if (!symbol.per_extent.empty()) out["per_extent"] = symbol.per_extent;
  return out;
}

}  // namespace

Json symbol_kinds_json(const BundleProgram& program) {
  Json out = Json::array();
  for (const Parameter& p : program.parameters) {
    Json entry = {{"kind", kind_name(p.kind)}};
    if (p.arg_index >= 0) entry["arg_index"] = p.arg_index;
    if (p.dim_index >= 0) {
      entry["dim_index"] = p.dim_index;
      entry["symbol"] = p.symbol;
      entry["granularity"] = p.bound.granularity;
      entry["max_value"] = p.bound.max;
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Json launch_spec_json(const Kernel& kernel, const BundleProgram& program) {
  std::vector<const LaunchArgument*> by_index;
  for (const LaunchArgument& arg : kernel.arguments) by_index.push_back(&arg);
  std::sort(by_index.begin(), by_index.end(),
            [](const auto* a, const auto* b) { return a->index < b->index; });
  Json args = Json::array();
  for (const LaunchArgument* arg : by_index) args.push_back(argument_json(*arg));
  Json symbols = Json::array();
  for (size_t i = 0; i < program.symbols.size(); ++i) {
    symbols.push_back(symbol_json(program.symbols[i], -static_cast<int64_t>(i) - 1));
  }
  return {{"version", kLaunchSpecVersion},
          {"kernel_name", kernel.name},
          {"pool_size", program.pool_is_parameter ? program.pool_bytes : 0},
          {"bundle_symbolic_args", true},
          {"args", args},
          {"emitter", "superdsc"},
          {"symbol_kinds", symbol_kinds_json(program)},
          {"symbols", symbols}};
}

}  // namespace spyre::superdsc
