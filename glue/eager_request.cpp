#include "glue/eager_request.h"

#include <algorithm>

#include "glue/fallback.h"
#include "glue/tensor_access.h"

namespace spyre::glue {

void EagerCall::add(const c10::IValue& value, bool is_written) {
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      add(tensor, is_written);
    }
  } else if (value.isOptionalTensorList()) {
    // Such lists are indices, which PyTorch takes from the CPU, too.
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      if (tensor.has_value() && is_spyre(*tensor)) {
        add(*tensor, is_written);
      }
    }
  } else if (value.isTensor()) {
    add(value.toTensor(), is_written);
  }
}

void EagerCall::add(const at::Tensor& tensor, bool is_written) {
  if (!tensor.defined()) {
    return;
  }
  const bool number = tensor.device().is_cpu() && tensor.dim() == 0;
  if (!number || is_written) {
    device_ = device_.value_or(tensor.device());
    require_one_device(*device_, tensor.device());
  }
  if (!is_spyre(tensor)) {
    return;
  }
  if (tensor.numel() > 0) {
    (void)memory_behind(tensor);
  }
  if (is_written) {
    written.push_back(static_cast<int>(tensors.size()));
  }
  tensors.push_back(tensor);
}

EagerCall read_call(const c10::FunctionSchema& schema, Arguments arguments) {
  EagerCall call(arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    call.add(arguments[i], alias != nullptr && alias->isWrite());
  }
  return call;
}

}  // namespace spyre::glue
