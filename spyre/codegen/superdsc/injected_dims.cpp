// Dimensions the artifact needs and the iteration space lacks. All are unsplit, of size 1 or one stick.

#include <fmt/format.h>

#include "spyre/codegen/superdsc/plan.h"

namespace spyre::superdsc {
namespace {

// A unit dimension in front, for ops that want a row dimension besides the stick.
void prepend_row(SdscPlan& plan) {
  plan.dims.insert(plan.dims.begin(), {.label = "mb"});
  for (Tensor& tensor : plan.tensors) {
    for (TensorDim& d : tensor.dims) ++d.dim;
    for (StickPart& p : tensor.stick) ++p.dim;
    tensor.dims.insert(tensor.dims.begin(), {.dim = 0});
  }
}

bool wants_row(const SdscPlan& plan) {
  return (plan.is_conversion() || plan.is(OpFamily::kQuantScale)) && plan.dims.size() == 1 &&
         plan.reference().own_stick && !plan.find_label("mb");
}

void stick_along(Tensor& tensor, int dim) {
  if (tensor.find(dim) == nullptr) tensor.dims.push_back({.dim = dim});
  tensor.stick = {{.dim = dim, .size = tensor.lanes}};
  tensor.own_stick = true;
}

// N = 1 has no loop; right operand and result hold one column, whose stick becomes a dimension.
Status add_matmul_column(SdscPlan& plan) {
  Tensor& w = plan.tensors[1];
  Tensor& out = plan.tensors[2];
  if (w.own_stick || out.own_stick) return Status();
  SPYRE_ASSIGN_OR_RETURN(std::string label, unused_label(plan));
  const int dim = plan.add_dim(std::move(label), 1);
  stick_along(w, dim);
  stick_along(out, dim);
  return Status();
}

// k = 1 has no loop; the output still needs a rank dimension.
Status add_topk_rank(SdscPlan& plan) {
  if (plan.info->id == OpId::keepbyindex) return Status();
  Tensor& out = plan.tensors.back();
  for (const TensorDim& d : out.dims) {
    if (plan.tensors.front().find(d.dim) == nullptr) return Status();
  }
  SPYRE_ASSIGN_OR_RETURN(std::string label, unused_label(plan));
  const int dim = plan.add_dim(std::move(label), 1);
  out.dims.insert(out.dims.begin(), {.dim = dim});
  return Status();
}

// Nothing in the reference tensor runs along the stick: every position owns a whole stick, and a synthetic
// dimension of one stick makes all of its lanes real.
Status add_stick(SdscPlan& plan) {
  const int64_t lanes = plan.reference().lanes;
  std::string label = "out";
  int64_t extent = lanes;
  if ((plan.is(OpFamily::kPool) || plan.is(OpFamily::kDepthwise)) && !plan.find_label("out")) {
    extent = plan.op->node_output_ranges[1];
  } else {
    SPYRE_ASSIGN_OR_RETURN(label, unused_label(plan));
  }
  const int dim = plan.add_dim(std::move(label), extent);
  for (Tensor& tensor : plan.tensors) {
    if (tensor.indirection == Indirection::kIndex) continue;
    if (tensor.own_stick) {
      return plan.refuse(tensor, "has a stick dimension, but the tensor that shapes the op has none")
          .try_instead("a restickify before the op");
    }
    stick_along(tensor, dim);
  }
  // Each moment pair of the rows sits in one stick, whatever the width of the result.
  if (plan.info->id == OpId::layernormscale) {
    plan.tensors.front().find(dim)->scale = -2;
    plan.tensors.front().own_stick = false;
  }
  return Status();
}

}  // namespace

Status inject_dims(SdscPlan& plan) {
  if (wants_row(plan)) prepend_row(plan);
  if (plan.is(OpFamily::kMatmul)) return add_matmul_column(plan);
  if (plan.is(OpFamily::kTopK)) SPYRE_TRY(add_topk_rank(plan));
  if (!plan.reference().own_stick && !plan.is(OpFamily::kConv)) return add_stick(plan);
  return Status();
}

}  // namespace spyre::superdsc
