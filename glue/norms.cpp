#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

#include <numeric>

#include "glue/kernels.h"

namespace spyre::glue {

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                     c10::IntArrayRef normalized_shape,
                                                     const at::Tensor& scale,
                                                     const std::optional<at::Tensor>& weight,
                                                     std::array<bool, 2> wanted) {
  const int64_t outer = input.dim() - static_cast<int64_t>(normalized_shape.size());
  std::vector<int64_t> outer_dims(static_cast<size_t>(outer)), inner_dims(normalized_shape.size());
  std::iota(outer_dims.begin(), outer_dims.end(), 0);
  std::iota(inner_dims.begin(), inner_dims.end(), outer);
  const bool weighted = weight.has_value() && weight->defined();
  const at::Tensor normal = input * scale;
  at::Tensor input_gradient, weight_gradient;
  if (wanted[0]) {
    const at::Tensor slope = weighted ? gradient * *weight : gradient;
    input_gradient = (slope - normal * at::mean(slope * normal, inner_dims, /*keepdim=*/true)) * scale;
  }
  if (wanted[1] && weighted) {
    weight_gradient = outer == 0 ? gradient * normal : at::sum(gradient * normal, outer_dims);
  }
  return {input_gradient, weight_gradient};
}

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

}  // namespace spyre::glue
