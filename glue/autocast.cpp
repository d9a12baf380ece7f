// torch.autocast("spyre"): PyTorch's standard cast policies for its standard lists of operators.

#include <ATen/autocast_mode.h>

namespace spyre::glue {
namespace {

using at::Tensor;

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define SPYRE_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(SPYRE_LOWER)
#undef SPYRE_LOWER
#define SPYRE_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(SPYRE_FP32)
#undef SPYRE_FP32
#define SPYRE_FP32_OPT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(SPYRE_FP32_OPT)
#undef SPYRE_FP32_OPT
#define SPYRE_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(SPYRE_PROMOTE)
#undef SPYRE_PROMOTE
}

}  // namespace
}  // namespace spyre::glue
