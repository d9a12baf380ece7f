// Which dimensions a tensor lists, and how it stands to each: present, broadcast or reduced, one stick for
// all.

#include <fmt/format.h>

#include "spyre/codegen/superdsc/plan.h"

namespace spyre::superdsc {
namespace {

// Present dimensions of the reference tensor in its order, then the rest in iteration order. Windows stay
// out.
std::vector<int> op_dim_order(const SdscPlan& plan) {
  std::vector<int> order;
  const auto add = [&](int dim) {
    if (!plan.dims[dim].window && std::find(order.begin(), order.end(), dim) == order.end())
      order.push_back(dim);
  };
  for (const TensorDim& d : plan.reference().dims) add(d.dim);
  for (size_t i = 0; i < plan.dims.size(); ++i) add(static_cast<int>(i));
  return order;
}

Status append_absent_dims(SdscPlan& plan) {
  const std::vector<int> order = op_dim_order(plan);
  const std::vector<StickPart> op_stick = plan.reference().stick;
  for (Tensor& tensor : plan.tensors) {
    if (tensor.indirection == Indirection::kIndex) continue;
    for (const int dim : order) {
      if (tensor.find(dim) != nullptr) continue;
      if (plan.dims[dim].symbol.empty() && plan.dims[dim].extent == 1) {
        tensor.dims.push_back({.dim = dim});  // an injected position of one: nothing is broadcast or folded
        continue;
      }
      const bool whole_stick = !tensor.own_stick && !op_stick.empty() && op_stick[0].dim == dim;
      tensor.dims.push_back({.dim = dim, .scale = whole_stick ? -2 : -1});
    }
    if (!tensor.own_stick) tensor.stick = {{.dim = op_stick[0].dim, .size = tensor.lanes}};
  }
  return Status();
}

// Conversions and restickify change the stick by design; elsewhere all tensors run along the same one.
Status require_common_stick(const SdscPlan& plan) {
  if (plan.is_conversion() || plan.is_restickify()) return Status();
  const int op_stick = plan.reference().stick[0].dim;
  for (const Tensor& tensor : plan.tensors) {
    if (tensor.indirection == Indirection::kIndex || tensor.stick[0].dim == op_stick) continue;
    return plan
        .refuse(tensor, fmt::format("its stick runs along '{}', the op's along '{}'",
                                    plan.dims[tensor.stick[0].dim].label, plan.dims[op_stick].label))
        .try_instead("a restickify before the op");
  }
  return Status();
}

// A batch dimension of the right operand that the left one lacks is a broadcast of the left.
void append_batch_broadcast(SdscPlan& plan) {
  Tensor& x = plan.tensors[0];
  const Tensor& w = plan.tensors[1];
  const Tensor& out = plan.tensors[2];
  for (const TensorDim& d : w.dims) {
    const bool batch = out.find(d.dim) != nullptr && x.find(d.dim) == nullptr && out.part(d.dim) == 1;
    if (batch) x.dims.push_back({.dim = d.dim, .scale = -1});
  }
}

// A position selected in one operand is a batch of one: present in all three.
void append_selected_positions(SdscPlan& plan) {
  for (size_t i = 0; i < plan.dims.size(); ++i) {
    if (!plan.dims[i].symbol.empty() || plan.dims[i].extent != 1) continue;
    for (Tensor& tensor : plan.tensors) {
      const int dim = static_cast<int>(i);
      if (tensor.find(dim) == nullptr) tensor.dims.push_back({.dim = dim});
    }
  }
}

Status check_matmul_sticks(const SdscPlan& plan) {
  const Tensor& x = plan.tensors[0];
  const Tensor& w = plan.tensors[1];
  const Tensor& out = plan.tensors[2];
  if (x.stick.size() != 1 || w.find(x.stick[0].dim) == nullptr || out.find(x.stick[0].dim) != nullptr) {
    return plan.refuse(x, "the left operand's stick must be K, the dimension that is summed")
        .try_instead("a restickify before the matmul");
  }
  if (out.stick.size() != 1 || x.find(out.stick[0].dim) != nullptr || w.find(out.stick[0].dim) == nullptr) {
    return plan.refuse(out, "the result's stick must be N");
  }
  if (w.part(out.stick[0].dim) == 1) {
    return plan.refuse(w, "the right operand's stick must be N")
        .try_instead("a restickify before the matmul");
  }
  const size_t wanted = plan.info->id == OpId::batchmatmulfp8 ? 2 : 1;
  if (w.stick.size() != wanted) {
    return plan.refuse(
        w, fmt::format("a stick of {} parts, {} takes {}", w.stick.size(), plan.info->name, wanted));
  }
  return Status();
}

// Dimensions an op folds into its output.
Status check_reduction(const SdscPlan& plan) {
  if (!plan.is(OpFamily::kReduction) && plan.info->id != OpId::exx2) return Status();
  bool folds_stick = false;
  int folded = 0;
  for (const TensorDim& d : plan.output().dims) {
    if (d.scale > 0 || plan.dims[d.dim].logical == 1) continue;
    ++folded;
    folds_stick |= d.scale == -2;
  }
  if (folded > 1) {
    return plan.refuse(fmt::format("folds {} dimensions, one at a time is allowed", folded))
        .try_instead("one reduction per dimension");
  }
  if (folds_stick && plan.is(OpFamily::kReduction) && !plan.info->stick_variant) {
    return plan.refuse("cannot fold the stick dimension").try_instead("a restickify before the op");
  }
  if (folded == 1 && !folds_stick && plan.info->id == OpId::exx2) {
    return plan.refuse("folds the stick dimension only").try_instead("a restickify before the op");
  }
  return Status();
}

}  // namespace

Status assign_scales(SdscPlan& plan) {
  if (plan.is(OpFamily::kMatmul)) {
    append_selected_positions(plan);
    append_batch_broadcast(plan);
    return check_matmul_sticks(plan);
  }
  if (plan.lists_own_dims_only()) {
    for (const Tensor& tensor : plan.tensors) {
      if (!tensor.own_stick) return plan.refuse(tensor, "has no stick dimension");
    }
    return Status();
  }
  SPYRE_TRY(append_absent_dims(plan));
  SPYRE_TRY(require_common_stick(plan));
  return check_reduction(plan);
}

}  // namespace spyre::superdsc
