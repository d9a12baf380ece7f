#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "glue/eager_call.h"

/// How shape and dtype of an operator's results are known before anything runs.
namespace spyre::glue {

using ResultRule = std::vector<ResultSpec> (*)(const c10::OperatorHandle& op, Arguments args);

ResultSpec spec_of(const at::Tensor& tensor);

/// PyTorch's own rule: the operator runs on tensors without data. Raises what PyTorch raises for bad
/// arguments.
std::vector<ResultSpec> by_meta(const c10::OperatorHandle& op, Arguments args);
/// Of operators that write into their first argument and have no rule in PyTorch.
std::vector<ResultSpec> of_self(const c10::OperatorHandle& op, Arguments args);
/// Of native_layer_norm: the statistics have the dtype of the input, as on the CPU.
std::vector<ResultSpec> of_layer_norm(const c10::OperatorHandle& op, Arguments args);
std::vector<ResultSpec> of_rms_norm(const c10::OperatorHandle& op, Arguments args);
/// Of batch norms, with running statistics or without: the statistics have the dtype of the input.
std::vector<ResultSpec> of_batch_norm(const c10::OperatorHandle& op, Arguments args);
/// As the input and the weight are.
std::vector<ResultSpec> of_rms_norm_backward(const c10::OperatorHandle& op, Arguments args);
/// Of a product by groups, for which PyTorch's own rule takes bfloat16 alone.
std::vector<ResultSpec> of_grouped_mm(const c10::OperatorHandle& op, Arguments args);

}  // namespace spyre::glue
