#include "glue/eager_rules.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "glue/tensor_access.h"
#include "spyre/layout/device_layout.h"

namespace spyre::glue {
namespace {

c10::IValue without_data(const c10::IValue& value) {
  const auto meta = [](const at::Tensor& tensor) {
    if (!is_spyre(tensor)) {
      return tensor;
    }
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta));
  };
  if (value.isTensor()) {
    return meta(value.toTensor());
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      list.push_back(tensor.has_value() ? std::optional(meta(*tensor)) : std::nullopt);
    }
    return list;
  }
  if (!value.isTensorList()) {
    return value.isDevice() ? c10::IValue(c10::Device(c10::kMeta)) : value;
  }
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : value.toTensorVector()) {
    list.push_back(meta(tensor));
  }
  return list;
}

ResultSpec absent() {
  return {.size = {0}, .stride = {1}, .absent = true};
}

}  // namespace

ResultSpec spec_of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

std::vector<ResultSpec> by_meta(const c10::OperatorHandle& op, Arguments arguments) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  torch::jit::Stack stack;
  for (const c10::IValue& value : arguments) {
    stack.push_back(without_data(value));
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  std::vector<ResultSpec> specs;
  for (const c10::IValue& value : stack) {
    const bool given = value.isTensor() && value.toTensor().defined();
    specs.push_back(given ? spec_of(value.toTensor())
                          : ResultSpec{.size = {0}, .stride = {1}, .absent = true});
  }
  return specs;
}

std::vector<ResultSpec> of_self(const c10::OperatorHandle& /*op*/, Arguments arguments) {
  return {spec_of(arguments[0].toTensor())};
}

std::vector<ResultSpec> of_layer_norm(const c10::OperatorHandle& /*op*/, Arguments arguments) {
  const at::Tensor& x = arguments[0].toTensor();
  const std::vector<int64_t> inner = arguments[1].toIntVector();
  TORCH_CHECK(!inner.empty() && static_cast<int64_t>(inner.size()) <= x.dim() &&
                  x.sizes().slice(static_cast<size_t>(x.dim()) - inner.size()) == c10::IntArrayRef(inner),
              "the normalized shape is not the end of the input's");
  const std::vector<int64_t> size = x.sizes().vec();
  std::vector<int64_t> kept = size;
  std::fill(kept.end() - static_cast<std::ptrdiff_t>(inner.size()), kept.end(), 1);
  const ResultSpec statistics{kept, spyre::contiguous_strides(kept), x.scalar_type()};
  return {{size, spyre::contiguous_strides(size), x.scalar_type()}, statistics, statistics};
}

std::vector<ResultSpec> of_rms_norm(const c10::OperatorHandle& op, Arguments arguments) {
  std::vector<ResultSpec> specs = of_layer_norm(op, arguments);
  specs.pop_back();
  return specs;
}

std::vector<ResultSpec> of_batch_norm(const c10::OperatorHandle& op, Arguments arguments) {
  const at::Tensor& x = arguments[0].toTensor();
  ResultSpec out = spec_of(x);
  if (!x.is_non_overlapping_and_dense()) {
    out.stride = at::infer_dense_strides(x.sizes(), x.strides());
  }
  const ResultSpec statistic{{x.size(1)}, {1}, x.scalar_type()};
  std::vector<ResultSpec> specs = {std::move(out), statistic, statistic};
  for (size_t i = specs.size(); i < op.schema().returns().size();
       ++i) {  // the running ones, where there are any
    specs.push_back({{x.size(1)}, {1}, arguments[i].toTensor().scalar_type()});
  }
  return specs;
}

std::vector<ResultSpec> of_rms_norm_backward(const c10::OperatorHandle& /*op*/, Arguments arguments) {
  const auto of = [](const at::Tensor& tensor) {
    return ResultSpec{tensor.sizes().vec(), spyre::contiguous_strides(tensor.sizes()), tensor.scalar_type()};
  };
  const c10::List<bool> wanted = arguments[5].toBoolList();
  const bool weighted = arguments[4].isTensor() && arguments[4].toTensor().defined();
  return {wanted[0] ? of(arguments[1].toTensor()) : absent(),
          wanted[1] && weighted ? of(arguments[4].toTensor()) : absent()};
}

std::vector<ResultSpec> of_grouped_mm(const c10::OperatorHandle& /*op*/, Arguments arguments) {
  const at::Tensor &x = arguments[0].toTensor(), &weight = arguments[1].toTensor();
  const bool has_ends = arguments[2].isTensor() && arguments[2].toTensor().defined();
  TORCH_CHECK(has_ends && x.dim() == 2 && (weight.dim() == 2 || weight.dim() == 3),
              "the groups are not of rows, or of columns");
  std::vector<int64_t> size = {x.size(0), weight.size(-1)};
  if (weight.dim() == 2) {
    size.insert(size.begin(), arguments[2].toTensor().numel());
  }
  const bool has_dtype = arguments[4].isInt();
  return {{size, spyre::contiguous_strides(size), has_dtype ? arguments[4].toScalarType() : x.scalar_type()}};
}

}  // namespace spyre::glue
