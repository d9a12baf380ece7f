#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>

#include <optional>
#include <vector>

#include "glue/eager_call.h"

namespace spyre::glue {

/// The arguments of one call. All its tensors are on one device, but for numbers (CPU tensors without
/// dimensions) that are only read; other mixtures raise what PyTorch raises for them on every device.
struct EagerCall {
  Arguments arguments;
  std::vector<at::Tensor> tensors;  ///< those on the card, lists unfolded, in order
  std::vector<int> written;         ///< positions of those the operator writes, in the order of its results

  explicit EagerCall(Arguments args) : arguments(args) {}

  void add(const c10::IValue& value, bool is_written);

 private:
  void add(const at::Tensor& tensor, bool is_written);

  std::optional<c10::Device> device_;
};

EagerCall read_call(const c10::FunctionSchema& schema, Arguments arguments);

}  // namespace spyre::glue
