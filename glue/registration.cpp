// Which operators this backend implements itself. A list of names: the code is in the files that kernels.h
// names.

#include <torch/library.h>

#include "glue/eager.h"
#include "glue/eager_steps.h"
#include "glue/fallback.h"
#include "glue/generator.h"
#include "glue/kernels.h"

namespace spyre::glue {
namespace {

/// Operators whose default for backends without a kernel does not serve us, so that the fallback runs
/// instead.
constexpr const char* kFallbackBeforeDefault[] = {
    // The default asks for a kernel of the backend's own.
    "_convolution",
    "kaiser_window",
    "kaiser_window.beta",
    "kaiser_window.periodic",
    "mode.values",
    // The default copies a storage by its bytes, which on the card include padding.
    "as_strided_scatter",
    "copy",
    "diagonal_scatter",
    // The default composes several operators, each of which rounds; the CPU's kernel rounds once.
    "addr",
};

/// Operators that overwrite a tensor with random numbers.
constexpr const char* kDraws[] = {
    "bernoulli_.float", "cauchy_", "exponential_", "geometric_", "log_normal_",
    "normal_",          "random_", "random_.from", "random_.to", "uniform_",
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("resize_", &resize_);
  m.impl("set_", &set_empty);
  m.impl("set_.source_Storage", &set_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage_offset);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("is_set_to", &is_set_to);

  m.impl("alias", &alias);
  m.impl("as_strided", &as_strided);
  m.impl("as_strided_", &as_strided_in_place);
  m.impl("view", &view);
  m.impl("_unsafe_view", &view);  // PyTorch's own would make a tensor that is not ours
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("unfold", &unfold);
  m.impl("view.dtype", &view_dtype);

  m.impl("_to_copy", &to_copy);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);

  m.impl("fill_.Scalar", &fill_scalar);
  m.impl("fill_.Tensor", &fill_tensor);
  m.impl("zero_", &zero_);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("record_stream", &record_stream);

  m.impl("native_batch_norm", &batch_norm);
  m.impl("_nested_tensor_from_mask_left_aligned", &packs_no_texts);

  register_eager(m, "aten");
  register_values(m);
  for (const char* name : kDraws) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&draw>());
  }
  for (const char* name : kFallbackBeforeDefault) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&cpu_fallback_without_kernel>());
  }
}

/// Composites: registered above autograd, too, where PyTorch's own would take them apart.
void register_composites(torch::Library& m) {
  m.impl("one_hot", &one_hot);
  m.impl("scaled_dot_product_attention", &attention);
  m.impl("softmax.int", &softmax_as);
  m.impl("log_softmax.int", &log_softmax_as);
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  register_composites(m);
}
TORCH_LIBRARY_IMPL(spyre, PrivateUse1, m) {
  register_eager(m, "spyre");
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  register_composites(m);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&cpu_fallback_without_kernel>());
}

}  // namespace
}  // namespace spyre::glue
