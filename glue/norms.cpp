#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/new_empty.h>

#include "glue/kernels.h"

namespace spyre::glue {

namespace {

bool widens(const at::Tensor& x, std::optional<c10::ScalarType> dtype) {
  return dtype == c10::kFloat && (x.scalar_type() == c10::kHalf || x.scalar_type() == c10::kBFloat16);
}

at::Tensor as_asked(const at::Tensor& x, std::optional<c10::ScalarType> dtype) {
  return dtype.has_value() ? x.to(*dtype) : x;
}

}  // namespace

at::Tensor softmax_as(const at::Tensor& x, int64_t dim, std::optional<c10::ScalarType> dtype) {
  dim = at::maybe_wrap_dim(dim, x.dim());
  return widens(x, dtype) ? at::_softmax(x, dim, /*half_to_float=*/true)
                          : at::_softmax(as_asked(x, dtype), dim, /*half_to_float=*/false);
}

at::Tensor log_softmax_as(const at::Tensor& x, int64_t dim, std::optional<c10::ScalarType> dtype) {
  dim = at::maybe_wrap_dim(dim, x.dim());
  return widens(x, dtype) ? at::_log_softmax(x, dim, /*half_to_float=*/true)
                          : at::_log_softmax(as_asked(x, dtype), dim, /*half_to_float=*/false);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(const at::Tensor& x,
                                                          const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias,
                                                          const std::optional<at::Tensor>& running_mean,
                                                          const std::optional<at::Tensor>& running_var,
                                                          bool training, double momentum, double eps) {
  const bool tracked = running_mean && running_mean->defined() && running_var && running_var->defined();
  if (!tracked) {
    return at::_native_batch_norm_legit(x, weight, bias, training, momentum, eps);
  }
  auto [out, mean, scale, mean_after, var_after] = at::_native_batch_norm_legit_functional(
      x, weight, bias, *running_mean, *running_var, training, momentum, eps);
  if (!training) {
    return {out, x.new_empty({0}), x.new_empty({0})};
  }
  running_mean->copy_(mean_after);
  running_var->copy_(var_after);
  return {out, mean, scale};
}

}  // namespace spyre::glue
