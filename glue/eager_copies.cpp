#include "glue/eager_copies.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "glue/eager.h"
#include "glue/eager_call.h"
#include "glue/tensor_access.h"
#include "spyre/layout/device_layout.h"

namespace spyre::glue {
namespace {

/// Whether a tensor lies as a fresh one of this size does.
bool lies_as_fresh(const at::Tensor& tensor, c10::IntArrayRef size) {
  if (!tensor.is_contiguous() || is_part(tensor)) {
    return false;
  }
  const DeviceLayout layout = layout_of(tensor);
  const auto fresh = DeviceLayout::standard(size.vec(), layout.device_dtype);
  return fresh.ok() && fresh.value() == layout;
}

/// None where no kernel copies it.
std::optional<at::Tensor> copied(const at::Tensor& tensor, CopyForm form) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  at::Tensor elements = tensor;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.stride(d) == 0 && tensor.size(d) > 1) {
      elements = elements.narrow(d, 0, 1);
    }
  }
  at::Tensor copy = at::empty(elements.sizes(), tensor.options());
  if (form == CopyForm::kSqueezed) {
    copy = at::empty(elements.squeeze().sizes(), tensor.options()).view(elements.sizes());
  }
  return copy_on_card(elements, copy).empty() ? std::optional(copy.expand(tensor.sizes())) : std::nullopt;
}

/// An argument with copies in place of what they are copies of.
c10::IValue with_copy(const c10::IValue& value, const Copies& copies) {
  const auto replaced = [&](const at::Tensor& tensor) {
    const auto copy = copies.find(tensor.unsafeGetTensorImpl());
    return copy == copies.end() ? tensor : copy->second;
  };
  if (value.isTensor()) {
    return replaced(value.toTensor());
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      list.push_back(tensor.has_value() ? std::optional(replaced(*tensor)) : std::nullopt);
    }
    return list;
  }
  if (!value.isTensorList()) {
    return value;
  }
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : value.toTensorVector()) {
    list.push_back(replaced(tensor));
  }
  return list;
}

}  // namespace

std::vector<OperandCopy> wanted_copies(const std::vector<at::Tensor>& tensors,
                                       const std::vector<int>& positions, CopyForm form) {
  std::vector<OperandCopy> wanted;
  for (const int position : positions) {
    const at::Tensor& tensor = tensors[static_cast<size_t>(position)];
    const at::Tensor shape = form == CopyForm::kPlain ? tensor : tensor.squeeze();
    const bool differs = form == CopyForm::kPlain || shape.dim() != tensor.dim();
    if (tensor.numel() > 0 && differs && !lies_as_fresh(tensor, shape.sizes())) {
      wanted.push_back({position, form});
    }
  }
  return wanted;
}

Copies make_copies(const std::vector<at::Tensor>& tensors, std::span<const OperandCopy> wanted) {
  Copies copies;
  for (const OperandCopy& one : wanted) {
    const at::Tensor& tensor = tensors[static_cast<size_t>(one.position)];
    if (copies.contains(tensor.unsafeGetTensorImpl())) {
      continue;
    }
    if (std::optional<at::Tensor> copy = copied(tensor, one.form)) {
      copies.emplace(tensor.unsafeGetTensorImpl(), std::move(*copy));
    }
  }
  return copies;
}

std::vector<int64_t> memory_order(const at::Tensor& tensor) {
  std::vector<int64_t> order(static_cast<size_t>(tensor.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return tensor.stride(a) > tensor.stride(b); });
  return order;
}

bool settle(const at::Tensor& written) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const at::Tensor tensor = written.permute(memory_order(written));
  if (tensor.numel() == 0 || !tensor.is_contiguous() || is_part(tensor) ||
      lies_as_fresh(tensor, tensor.sizes())) {
    return false;
  }
  const std::optional<at::Tensor> copy = copied(tensor, CopyForm::kPlain);
  if (!copy || !lies_as_fresh(*copy, copy->sizes())) {
    return false;
  }
  c10::StorageImpl& mine = *tensor.storage().unsafeGetStorageImpl();
  c10::StorageImpl& fresh = *copy->storage().unsafeGetStorageImpl();
  const size_t bytes = mine.nbytes();
  c10::DataPtr taken = fresh.set_data_ptr(c10::DataPtr(nullptr, tensor.device()));
  fresh.set_data_ptr_noswap(mine.set_data_ptr(std::move(taken)));
  mine.set_nbytes(fresh.nbytes());
  fresh.set_nbytes(bytes);
  return true;
}

std::vector<c10::IValue> with_copies(std::span<const c10::IValue> arguments, const Copies& copies) {
  std::vector<c10::IValue> result;
  for (const c10::IValue& value : arguments) {
    result.push_back(with_copy(value, copies));
  }
  return result;
}

}  // namespace spyre::glue
