// Tensors with equal sticks and the same set of dimensions share a label. It names a layout, not a role.

#include <fmt/format.h>
#include <algorithm>

#include "spyre/codegen/superdsc/plan.h"

namespace spyre::superdsc {
namespace {

std::vector<std::string_view> labels_in_order(const SdscPlan& plan) {
  if (plan.is(OpFamily::kMatmul) || plan.is(OpFamily::kConv))
    return {"INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"};
  if (plan.is(OpFamily::kDepthwise)) return {"OUTPUT", "INPUT", "KERNEL", "KERNEL_IDX"};
  return {"OUTPUT", "KERNEL", "INPUT", "KERNEL_IDX"};
}

bool same_class(const LayoutClass& layout, const std::vector<int>& dims,
                const std::vector<StickPart>& stick) {
  return layout.stick == stick && layout.dims.size() == dims.size() &&
         std::is_permutation(dims.begin(), dims.end(), layout.dims.begin());
}

}  // namespace

Status classify_layouts(SdscPlan& plan) {
  const bool indirect = std::any_of(plan.tensors.begin(), plan.tensors.end(),
                                    [](const Tensor& t) { return t.indirection == Indirection::kIndex; });
  std::vector<std::string_view> labels = labels_in_order(plan);
  for (Tensor& tensor : plan.tensors) {
    std::vector<int> dims;
    for (const TensorDim& d : tensor.dims) dims.push_back(d.dim);
    const auto found = std::find_if(plan.layouts.begin(), plan.layouts.end(),
                                    [&](const LayoutClass& l) { return same_class(l, dims, tensor.stick); });
    if (found != plan.layouts.end()) {
      tensor.layout = found->label;
      continue;
    }
    const bool index = tensor.indirection == Indirection::kIndex;
    const auto label =
        indirect ? std::find(labels.begin(), labels.end(), index ? "KERNEL_IDX" : "OUTPUT") : labels.begin();
    if (label == labels.end()) {
      return plan.refuse(tensor, indirect ? "values and output of a gather must share one layout"
                                          : "a fifth layout, an op has at most four");
    }
    tensor.layout = *label;
    plan.layouts.push_back({.label = tensor.layout, .dims = dims, .stick = tensor.stick});
    labels.erase(label);
  }
  return Status();
}

}  // namespace spyre::superdsc
