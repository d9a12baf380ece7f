#include "spyre/codegen/superdsc/folds.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/physical.h"

namespace spyre::superdsc {
namespace {

struct Level {
  int64_t alpha;
  int64_t factor;
};

// Element levels, outermost first, below the core, corelet and row levels.
std::vector<Level> element_levels(const SdscPlan& plan, const Tensor& tensor, const TensorDim& d,
                                  int64_t size) {
  const int64_t part = tensor.part(d.dim);
  if (part == 1) return {{1, size}};
  if (d.scale == -2) return {{part, 1}, {0, part}};
  if (d.scale < 0) return {{part, 1}, {1, part}};
  if (plan.info->id == OpId::batchmatmulfp8 && &tensor == &plan.tensors.front()) {
    // Two 64-element sticks interleave in groups of 8: column 64h + 8g + e sits in lane 16g + 8h + e.
    return {{128, ceil_div(size, 128)}, {8, 8}, {64, 2}, {1, 8}};
  }
  return {{part, ceil_div(size, part)}, {1, part}};
}

Level core_level(const SdscPlan& plan, const Tensor& tensor, const TensorDim& d, int64_t size) {
  if (d.scale == -2) return {tensor.part(d.dim), 1};
  if (d.scale < 0) return {size, 1};
  const int64_t split = split_of(plan, tensor, d.dim);
  if (const auto window = window_along(plan, d.dim); window && is_windowed_input(plan, tensor)) {
    return {plan.dims[d.dim].per_core() * window->stride, split};
  }
  return {size, split};
}

int64_t size_per_core(const SdscPlan& plan, const Tensor& tensor, const TensorDim& d) {
  if (d.scale < 0) return 1;
  const int64_t per_core = plan.dims[d.dim].extent / split_of(plan, tensor, d.dim);
  if (const auto window = window_along(plan, d.dim); window && is_windowed_input(plan, tensor)) {
    return (per_core - 1) * window->stride + window->dilation * (window->kernel - 1) + 1;
  }
  return per_core;
}

Json coordinate_info(const SdscPlan& plan, const Tensor& tensor, const TensorDim& d) {
  const int64_t size = size_per_core(plan, tensor, d);
  const std::vector<Level> elements = element_levels(plan, tensor, d, size);
  Json functions = Json::array();
  Json attributes = Json::array();
  const auto add = [&](Level level, const std::string& label) {
    functions.push_back({{"Affine", {{"alpha_", level.alpha}, {"beta_", 0}}}});
    attributes.push_back({{"factor_", level.factor}, {"label_", label}});
  };
  add(core_level(plan, tensor, d, size), "core_fold");
  add({0, 1}, "corelet_fold");
  add({0, 1}, "row_fold");
  for (size_t i = 0; i < elements.size(); ++i) {
    add(elements[i], fmt::format("elem_arr_{}", elements.size() - 1 - i));
  }
  return {{"spatial", 3},
          {"temporal", 0},
          {"elemArr", elements.size()},
          {"padding", "nopad"},
          {"folds", {{"dim_prop_func", std::move(functions)}, {"dim_prop_attr", std::move(attributes)}}}};
}

// Only a relayout says which slice each core holds of this very tensor.
Json own_slices(const SdscPlan& plan, const Tensor& tensor) {
  Json slices = Json::object();
  if (tensor.arg->work_division.empty()) return slices;
  int64_t cores = 1;
  for (const WorkDivision& division : tensor.arg->work_division) cores *= division.split;
  cores = std::max({cores, plan.cores, tensor.arg->is_input ? 0 : plan.op->receiving_cores});
  std::vector<int64_t> holders(static_cast<size_t>(cores));
  std::iota(holders.begin(), holders.end(), 0);
  const std::vector<int64_t>& producers = plan.op->completed_producer_cores;
  for (const int64_t core : tensor.arg->is_input && !producers.empty() ? producers : holders) {
    Json row = Json::object();
    for (const TensorDim& d : tensor.dims) row[plan.dims[d.dim].label] = 0;
    for (const WorkDivision& division : tensor.arg->work_division) {
      const auto slice = division.owner.evaluate({{"core_id", core}});
      SPYRE_CHECK(slice.ok(), "a work division depends on core_id alone");
      row[plan.dims[*plan.find_symbol(division.symbol)].label] = slice.value();
    }
    slices[std::to_string(core)] = std::move(row);
  }
  return slices;
}

}  // namespace

Json coordinates_json(const SdscPlan& plan, const Tensor& tensor) {
  Json info = Json::object();
  for (const TensorDim& d : tensor.dims) info[plan.dims[d.dim].label] = coordinate_info(plan, tensor, d);
  return {{"coordInfo", std::move(info)}, {"coreIdToWkSlice_", own_slices(plan, tensor)}};
}

}  // namespace spyre::superdsc
