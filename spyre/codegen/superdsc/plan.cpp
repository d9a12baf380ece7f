#include "spyre/codegen/superdsc/plan.h"

#include <fmt/format.h>

namespace spyre::superdsc {

const TensorDim* Tensor::find(int dim) const {
  for (const TensorDim& d : dims) {
    if (d.dim == dim) return &d;
  }
  return nullptr;
}

TensorDim* Tensor::find(int dim) {
  return const_cast<TensorDim*>(std::as_const(*this).find(dim));
}

int64_t Tensor::part(int dim) const {
  for (const StickPart& p : stick) {
    if (p.dim == dim) return p.size;
  }
  return 1;
}

const Tensor& SdscPlan::reference() const {
  return op->is_reduction ? tensors.front() : tensors.back();
}

std::optional<int> SdscPlan::find_label(std::string_view label) const {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].label == label) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::optional<int> SdscPlan::find_symbol(std::string_view symbol) const {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!symbol.empty() && dims[i].symbol == symbol) return static_cast<int>(i);
  }
  return std::nullopt;
}

int SdscPlan::add_dim(std::string label, int64_t logical) {
  dims.push_back({.label = std::move(label), .logical = logical, .extent = logical});
  return static_cast<int>(dims.size()) - 1;
}

Error SdscPlan::refuse(std::string_view message) const {
  return Error(ErrorKind::kUnsupported, fmt::format("op '{}': {}", info->name, message));
}

Error SdscPlan::refuse(const Tensor& tensor, std::string_view message) const {
  return Error(ErrorKind::kUnsupported,
               fmt::format("op '{}', tensor '{}': {}", info->name, tensor.arg->name, message));
}

namespace {

// Slice of every dimension on every core. Injected dimensions are whole on each.
Status evaluate_core_map(SdscPlan& plan) {
  plan.cores = cores_used(*plan.op);
  for (int64_t core = 0; core < plan.cores; ++core) {
    std::vector<int64_t> slices(plan.dims.size(), 0);
    for (const auto& [symbol, slice] : plan.op->core_id_to_work_slice) {
      SPYRE_ASSIGN_OR_RETURN(slices[*plan.find_symbol(symbol)], slice.evaluate({{"core_id", core}}));
    }
    plan.slices.push_back(std::move(slices));
  }
  return Status();
}

void name_function(SdscPlan& plan) {
  bool folds_stick = false;
  for (const TensorDim& d : plan.output().dims) folds_stick |= d.scale == -2;
  plan.function = op_func_name(*plan.info, plan.is(OpFamily::kReduction) && !folds_stick);
}

}  // namespace

Result<SdscPlan> plan_sdsc(const OpSpec& op, const Machine& machine) {
  SdscPlan plan{.op = &op, .info = &info_of(op.op)};
  SPYRE_TRY(label_dims(plan));
  SPYRE_TRY(order_tensor_dims(plan));
  SPYRE_TRY(inject_dims(plan));
  pad_extents(plan);
  SPYRE_TRY(assign_scales(plan));
  SPYRE_TRY(evaluate_core_map(plan));
  SPYRE_TRY(lay_out(plan, machine));
  SPYRE_TRY(classify_layouts(plan));
  name_function(plan);
  SPYRE_TRY(collect_constants(plan));
  SPYRE_TRY(check_shape(plan));
  return plan;
}

}  // namespace spyre::superdsc
