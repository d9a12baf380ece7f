// Stick extents are rounded up to whole sticks. The unpadded extent survives only in the mask.

#include <vector>

#include "spyre/codegen/superdsc/plan.h"

namespace spyre::superdsc {
namespace {

// Whose sticks must be whole.
std::vector<const Tensor*> rounding_tensors(const SdscPlan& plan) {
  std::vector<const Tensor*> all;
  for (const Tensor& tensor : plan.tensors) {
    if (tensor.indirection != Indirection::kIndex) all.push_back(&tensor);
  }
  const bool every = plan.is(OpFamily::kMatmul) || plan.is(OpFamily::kConv) ||
                     plan.is(OpFamily::kDepthwise) || plan.is_conversion() || plan.is_restickify();
  if (every) return all;
  return {&plan.reference()};
}

}  // namespace

void pad_extents(SdscPlan& plan) {
  for (const Tensor* tensor : rounding_tensors(plan)) {
    for (const StickPart& part : tensor->stick) {
      // The parts of a 2-D stick are rounded to the whole stick, not to their own share of it.
      Dim& dim = plan.dims[part.dim];
      dim.extent = round_up(dim.extent, tensor->lanes);
    }
  }
}

}  // namespace spyre::superdsc
