#include "glue/eager_steps.h"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>

#include "glue/eager.h"
#include "glue/eager_rules.h"
#include "glue/kernels.h"
#include "glue/tensor_access.h"
#include "spyre/forms/forms.h"

namespace spyre::glue {
namespace {

/// What runs where a form is refused as one graph.
Steps steps_of(forms::Form form) {
  return form == &forms::histogram ? &histogram_between_extremes : nullptr;
}

bool lies_otherwise(const at::Tensor& tensor, const ResultSpec& promised) {
  if (!tensor.defined() || promised.absent || tensor.numel() == 0) {
    return false;
  }
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1 && tensor.stride(d) != promised.stride[static_cast<size_t>(d)]) {
      return true;
    }
  }
  return false;
}

bool is_in_rows(const at::Tensor& tensor) {
  return !tensor.defined() || tensor.is_contiguous();
}

bool are_in_rows(const c10::IValue& value) {
  if (value.isTensor()) {
    return is_in_rows(value.toTensor());
  }
  if (!value.isTensorList() && !value.isOptionalTensorList()) {
    return true;
  }
  const auto items = value.toListRef();
  return std::all_of(items.begin(), items.end(), are_in_rows);
}

}  // namespace

StepsTaken take_steps(const std::function<std::optional<Tensors>()>& steps) {
  if (!eager_enabled()) {
    return {.refusal = kEagerIsOff};
  }
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const FormScope scope;
  try {
    if (std::optional<Tensors> results = steps()) {
      return {.results = std::move(results)};
    }
    return {.refusal = "it has no form for these arguments on the card"};
  } catch (const std::exception& error) {
    if (const std::optional<std::string> refusal = scope.refusal()) {
      return {.refusal = *refusal};
    }
    const auto* raised = dynamic_cast<const c10::Error*>(&error);
    if (raised == nullptr) {
      throw;
    }
    return {.refusal = "its form raised " + raised->msg().substr(0, raised->msg().find('\n')),
            .cause = FallbackCause::kWrongArguments};
  }
}

Tensors with_promised_strides(const c10::OperatorHandle& op, Arguments arguments, Tensors results) {
  if (op.schema().is_mutable() || (std::all_of(results.begin(), results.end(), is_in_rows) &&
                                   std::all_of(arguments.begin(), arguments.end(), are_in_rows))) {
    return results;
  }
  std::vector<ResultSpec> promised;
  try {
    promised = by_meta(op, arguments);
  } catch (const std::exception&) {
    return results;  // the rule has no answer: the shape depends on values, or the types are only the card's
  }
  for (size_t i = 0; i < results.size() && i < promised.size(); ++i) {
    if (lies_otherwise(results[i], promised[i])) {
      at::Tensor wanted = at::empty_strided(results[i].sizes(), promised[i].stride, results[i].options());
      results[i] = wanted.copy_(results[i]);
    }
  }
  return results;
}

void finish_steps(const c10::OperatorHandle& op, torch::jit::Stack* stack, Tensors results) {
  const std::vector<c10::Argument>& given = op.schema().arguments();
  const Arguments arguments(stack->data() + (stack->size() - given.size()), given.size());
  results = with_promised_strides(op, arguments, std::move(results));
  size_t next = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].alias_info() != nullptr && given[i].alias_info()->isWrite()) {
      const at::Tensor target = arguments[i].toTensor();
      at::Tensor& result = results[next++];
      TORCH_CHECK(c10::canCast(result.scalar_type(), target.scalar_type()), "result type ",
                  result.scalar_type(), " can't be cast to the desired output type ", target.scalar_type());
      if (given[i].is_out()) {
        at::native::resize_output_check(target, result.sizes());
        resize_to_write(target, result.sizes());
      }
      target.copy_(result);
      result = target;
    }
  }
  torch::jit::drop(stack, given.size());
  for (at::Tensor& result : results) {
    stack->emplace_back(std::move(result));
  }
}

bool run_refused_in_steps(const forms::FormRow& form, const c10::OperatorHandle& op,
                          torch::jit::Stack* stack) {
  const Steps steps = steps_of(form.form);
  if (steps == nullptr) {
    return false;
  }
  const size_t count = op.schema().arguments().size();
  const Arguments arguments(stack->data() + (stack->size() - count), count);
  const StepsTaken taken = take_steps([&] { return steps(arguments); });
  if (taken.results) {
    finish_steps(op, stack, *taken.results);
    return true;
  }
  if (taken.cause == FallbackCause::kWrongArguments) {
    cpu_fallback(op, stack, taken.refusal, taken.cause);
    return true;
  }
  return false;
}

}  // namespace spyre::glue
