// The planned op, by the rules that the card's reader applies to what is written.

#include <fmt/format.h>

#include "spyre/codegen/superdsc/physical.h"
#include "spyre/ops/legality.h"

namespace spyre::superdsc {
namespace {

OpShape::Tensor tensor_shape(const SdscPlan& plan, const Tensor& tensor) {
  OpShape::Tensor shape{.name = tensor.arg->name,
                        .presence = std::vector(plan.dims.size(), Presence::kUnlisted),
                        .per_stick = std::vector<int64_t>(plan.dims.size(), 1),
                        .is_index = tensor.indirection == Indirection::kIndex,
                        .through_index = tensor.indirection == Indirection::kValue,
                        .in_lx = tensor.in_lx()};
  for (const TensorDim& d : tensor.dims) {
    const auto dim = static_cast<size_t>(d.dim);
    shape.presence[dim] = d.scale > 0 ? Presence::kPresent : Presence::kAbsent;
    shape.per_stick[dim] = tensor.part(d.dim);
    if (is_windowed_input(plan, tensor) && window_along(plan, d.dim)) shape.windows.insert(d.dim);
  }
  for (const StickPart& part : tensor.stick) shape.stick.insert(part.dim);
  if (!tensor.arg->work_division.empty()) {
    for (size_t d = 0; d < plan.dims.size(); ++d)
      shape.own_splits.push_back(split_of(plan, tensor, static_cast<int>(d)));
  }
  return shape;
}

}  // namespace

Status check_shape(const SdscPlan& plan) {
  OpShape shape{.info = plan.info, .output = static_cast<int>(plan.tensors.size()) - 1};
  for (const Dim& dim : plan.dims) {
    shape.dims.push_back({.label = dim.label, .extent = dim.extent, .splits = dim.split});
  }
  for (const Tensor& tensor : plan.tensors) {
    if (tensor.arg->is_input && tensor.indirection != Indirection::kIndex)
      shape.inputs.push_back(static_cast<int>(shape.tensors.size()));
    shape.tensors.push_back(tensor_shape(plan, tensor));
  }
  const std::optional<Illegality> found = check_legality(shape);
  if (!found) return Status();
  const std::string message =
      fmt::format("{}: found {}, allowed: {}", found->field, found->found, found->allowed);
  return found->tensor < 0 ? plan.refuse(message)
                           : plan.refuse(plan.tensors[static_cast<size_t>(found->tensor)], message);
}

}  // namespace spyre::superdsc
