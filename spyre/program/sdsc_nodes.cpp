// Allocate nodes of scheduleTree_: where a tensor lies, in which order, starting where on which core.

#include <fmt/format.h>

#include "spyre/program/sdsc_parts.h"

namespace spyre::program {
namespace {

Result<std::map<std::string, int64_t>> read_slice(const Field& field) {
  std::map<std::string, int64_t> out;
  SPYRE_ASSIGN_OR_RETURN(const auto members, field.members(kMaxDims));
  for (const auto& [dim, value] : members) {
    SPYRE_ASSIGN_OR_RETURN(out[dim], value.integer(0, kMaxExtent));
  }
  return out;
}

/// The core id of a fold key "[c, 0, 0]"; nothing for another corelet or time step.
Result<std::optional<int64_t>> core_of_fold_key(const Field& data, std::string_view key) {
  const auto malformed = [&] {
    return data.refuse(fmt::format("the key '{}'", key.substr(0, 40)), "keys of the form \"[core, 0, 0]\"");
  };
  if (key.size() < 3 || key.front() != '[' || key.back() != ']') {
    return malformed();
  }
  key = key.substr(1, key.size() - 2);
  std::vector<int64_t> numbers;
  while (true) {
    const size_t comma = key.find(',');
    std::string_view part = key.substr(0, comma);
    while (!part.empty() && part.front() == ' ') {
      part.remove_prefix(1);
    }
    const std::optional<int64_t> number = parse_decimal(part);
    if (!number || numbers.size() == 3) {
      return malformed();
    }
    numbers.push_back(*number);
    if (comma == std::string_view::npos) {
      break;
    }
    key.remove_prefix(comma + 1);
  }
  if (numbers[0] < 0 || numbers[0] > kMaxCoreId) {
    return malformed();
  }
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] != 0) {
      return std::optional<int64_t>();
    }
  }
  return std::optional<int64_t>(numbers[0]);
}

Status read_start(const Field& node_field, AllocateRecord& node) {
  SPYRE_ASSIGN_OR_RETURN(const Field start, node_field.at("startAddressCoreCorelet_"));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> functions, start.find("dim_prop_func"));
  if (functions) {
    SPYRE_ASSIGN_OR_RETURN(const auto levels, functions->elements(8));
    node.one_start_for_all = !levels.empty() && levels[0].has("Const");
  }
  SPYRE_ASSIGN_OR_RETURN(const Field data, start.at("data_"));
  SPYRE_ASSIGN_OR_RETURN(const auto members, data.members(4 * kManyCores));
  for (const auto& [key, value] : members) {
    SPYRE_ASSIGN_OR_RETURN(const std::optional<int64_t> core, core_of_fold_key(data, key));
    if (core) {
      SPYRE_ASSIGN_OR_RETURN(node.start[*core], value.integer(kAnyLow, kAnyHigh));
    }
  }
  if (node.start.empty()) {
    return data.refuse_value("at least one start address");
  }
  return Status();
}

using DimGaps = std::map<std::string, std::map<int64_t, int64_t>>;

Status read_gaps(const Field& node_field, std::string_view key_name, DimGaps& gaps) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> field, node_field.find(key_name));
  if (!field) {
    return Status();
  }
  SPYRE_ASSIGN_OR_RETURN(const auto dims, field->members(kMaxDims));
  for (const auto& [dim, cores] : dims) {
    SPYRE_ASSIGN_OR_RETURN(const auto entries, cores.members(kManyCores + 1));
    for (const auto& [key, value] : entries) {
      int64_t core = -1;
      if (key != "-1") {
        SPYRE_ASSIGN_OR_RETURN(core, core_key(cores, key));
      }
      SPYRE_ASSIGN_OR_RETURN(gaps[dim][core], value.integer(-kMaxExtent, kMaxExtent));
    }
  }
  return Status();
}

Result<CoordinateRecord> read_coordinate(const std::string& dim, const Field& field) {
  CoordinateRecord out;
  out.dim = dim;
  SPYRE_ASSIGN_OR_RETURN(out.elem_arr, optional_integer(field, "elemArr", 0, 64, 1));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> folds, field.find("folds"));
  if (!folds) {
    return out;
  }
  SPYRE_ASSIGN_OR_RETURN(const Field functions, folds->at("dim_prop_func"));
  SPYRE_ASSIGN_OR_RETURN(const auto function_list, functions.elements(128));
  SPYRE_ASSIGN_OR_RETURN(const Field attributes, folds->at("dim_prop_attr"));
  SPYRE_ASSIGN_OR_RETURN(const auto attribute_list, attributes.elements(128));
  out.functions = function_list.size();
  out.attributes = attribute_list.size();
  for (size_t i = 0; i < std::min(out.functions, out.attributes); ++i) {
    FoldLevel level;
    SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> affine, function_list[i].find("Affine"));
    if (affine) {
      SPYRE_ASSIGN_OR_RETURN(level.alpha, optional_integer(*affine, "alpha_", -kMaxExtent, kMaxExtent, 0));
      SPYRE_ASSIGN_OR_RETURN(level.beta, optional_integer(*affine, "beta_", -kMaxExtent, kMaxExtent, 0));
    }
    SPYRE_ASSIGN_OR_RETURN(level.factor, optional_integer(attribute_list[i], "factor_", 0, kMaxExtent, 1));
    out.levels.push_back(level);
  }
  return out;
}

Status read_coordinates(const Field& node_field, AllocateRecord& node) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> field, node_field.find("coordinates_"));
  if (!field) {
    return Status();
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> info, field->find("coordInfo"));
  if (info) {
    SPYRE_ASSIGN_OR_RETURN(const auto dims, info->members(kMaxDims));
    for (const auto& [dim, value] : dims) {
      SPYRE_ASSIGN_OR_RETURN(CoordinateRecord coordinate, read_coordinate(dim, value));
      node.coordinates.push_back(std::move(coordinate));
    }
  }
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> slices, field->find("coreIdToWkSlice_"));
  if (slices) {
    SPYRE_ASSIGN_OR_RETURN(node.core_slices, read_core_slices(*slices));
  }
  return Status();
}

}  // namespace

Result<int64_t> core_key(const Field& owner, std::string_view key) {
  const std::optional<int64_t> core = parse_decimal(key);
  if (!core || *core < 0 || *core > kMaxCoreId) {
    return owner.refuse(fmt::format("the key '{}'", key), fmt::format("core ids from 0 to {}", kMaxCoreId));
  }
  return *core;
}

Result<std::map<int64_t, std::map<std::string, int64_t>>> read_core_slices(const Field& field) {
  std::map<int64_t, std::map<std::string, int64_t>> out;
  SPYRE_ASSIGN_OR_RETURN(const auto members, field.members(kManyCores));
  for (const auto& [key, value] : members) {
    SPYRE_ASSIGN_OR_RETURN(const int64_t core, core_key(field, key));
    SPYRE_ASSIGN_OR_RETURN(out[core], read_slice(value));
  }
  return out;
}

Result<AllocateRecord> read_node(const Field& field) {
  AllocateRecord node;
  SPYRE_ASSIGN_OR_RETURN(const std::string type, optional_text(field, "nodeType_", "allocate"));
  if (type != "allocate") {
    SPYRE_ASSIGN_OR_RETURN(const Field type_field, field.at("nodeType_"));
    return type_field.refuse_value("\"allocate\"");
  }
  SPYRE_ASSIGN_OR_RETURN(node.name, optional_text(field, "name_", ""));
  SPYRE_ASSIGN_OR_RETURN(const Field index, field.at("ldsIdx_"));
  SPYRE_ASSIGN_OR_RETURN(node.index, index.integer(0, static_cast<int64_t>(kMaxTensors)));
  SPYRE_ASSIGN_OR_RETURN(const Field component, field.at("component_"));
  SPYRE_ASSIGN_OR_RETURN(node.component, component.text());
  if (node.component != "hbm" && node.component != "lx") {
    return component.refuse_value("\"hbm\" or \"lx\"");
  }
  SPYRE_ASSIGN_OR_RETURN(const int64_t symbolic, optional_integer(field, "isStartAddrSymbolic_", 0, 1, 0));
  node.symbolic = symbolic == 1;
  SPYRE_ASSIGN_OR_RETURN(const Field dims, field.at("layoutDimOrder_"));
  SPYRE_ASSIGN_OR_RETURN(node.dims, dims.texts(kMaxDims));
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> max_sizes, field.find("maxDimSizes_"));
  if (max_sizes) {
    SPYRE_ASSIGN_OR_RETURN(const auto numbers, max_sizes->elements(kMaxDims));
    for (const Field& number : numbers) {
      SPYRE_ASSIGN_OR_RETURN(const int64_t size, number.integer(-1, kMaxExtent));
      node.max_dim_sizes.push_back(size);
    }
  }
  SPYRE_ASSIGN_OR_RETURN(node.indirection, optional_text(field, "indirectAllocType_", "no_indirection"));
  SPYRE_ASSIGN_OR_RETURN(node.partner, optional_text(field, "relatedIndirectAccessAlloc_", ""));
  SPYRE_TRY(read_start(field, node));
  SPYRE_TRY(read_gaps(field, "backGapCore_", node.back_gap));
  SPYRE_TRY(read_gaps(field, "spyreShortfallCore_", node.shortfall));
  SPYRE_TRY(read_coordinates(field, node));
  return node;
}

}  // namespace spyre::program
