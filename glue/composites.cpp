// Operators that PyTorch takes apart above autograd, and that the card has whole. What is not for the card stays PyTorch's.
// Compiled programs come by here, too, while they are traced: so they meet the whole operators.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/one_hot_native.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>

#include "glue/eager.h"
#include "glue/fallback.h"
#include "glue/kernels.h"
#include "glue/tensor_access.h"

namespace spyre::glue {
namespace {

/// What `whole` makes of x and others; nothing where the card refuses it, or its arguments, which PyTorch's steps then name.
template <typename Whole>
std::optional<at::Tensor> whole_on_card(const at::Tensor& x, const Whole& whole) {
  const bool is_traced = x.key_set().has(c10::DispatchKey::Python);
  if (!eager_enabled() && !is_traced) {
    return std::nullopt;
  }
  const FormScope scope;
  try {
    return whole();
  } catch (const std::exception&) {
    if (!scope.refusal()) {
      throw;
    }
    return std::nullopt;
  }
}

}  // namespace

bool is_whole_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        double dropout) {
  const c10::ScalarType type = query.scalar_type();
  const bool known = type == c10::kHalf || type == c10::kBFloat16 || type == c10::kFloat;
  return is_spyre(query) && known && query.dim() >= 3 && query.dim() == key.dim() &&
         query.dim() == value.dim() && dropout == 0;
}

bool is_whole_one_hot(const at::Tensor& index, int64_t classes) {
  return is_spyre(index) && index.sym_numel() > 0 && classes > 0;  // otherwise their number is left to values
}

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& mask, double dropout, bool is_causal,
                     std::optional<double> scale, bool enable_gqa) {
  using Whole = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           const std::optional<at::Tensor>&, bool, std::optional<double>);
  if (is_whole_attention(query, key, value, dropout)) {
    static const auto whole =
        c10::Dispatcher::singleton().findSchemaOrThrow("spyre::attention", "").typed<Whole>();
    if (auto found =
            whole_on_card(query, [&] { return whole.call(query, key, value, mask, is_causal, scale); })) {
      return *found;
    }
  }
  return at::native::scaled_dot_product_attention(query, key, value, mask, dropout, is_causal, scale,
                                                  enable_gqa);
}

at::Tensor one_hot(const at::Tensor& index, int64_t classes) {
  using Whole = at::Tensor(const at::Tensor&, int64_t);
  if (is_whole_one_hot(index, classes)) {
    static const auto whole =
        c10::Dispatcher::singleton().findSchemaOrThrow("spyre::one_hot", "").typed<Whole>();
    if (auto found = whole_on_card(index, [&] { return whole.call(index, classes); })) {
      return *found;
    }
  }
  // PyTorch's steps ask this of the CPU alone; on others an element is missing then.
  TORCH_CHECK(index.numel() == 0 || classes <= 0 || index.max().item<int64_t>() < classes,
              "Class values must be smaller than num_classes.");
  return at::native::one_hot(index, classes);
}

bool packs_no_texts(const at::Tensor& /*x*/, const at::Tensor& /*mask*/) {
  return false;
}

}  // namespace spyre::glue
