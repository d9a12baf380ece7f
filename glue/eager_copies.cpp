#include "glue/eager_copies.h"

#include <ATen/ExpandUtils.h>

#include <array>

#include "glue/eager.h"
#include "glue/eager_execute.h"
#include "glue/eager_planner.h"

namespace spyre::glue {
namespace {

/// Plans and runs a copy; says why no kernel does it, nothing where one did. `to` is written, or made where it is undefined.
std::string run_copy(Arguments arguments, const ResultSpec& spec, at::Tensor& to) {
  static const EagerRow row{forms::find_form("aten._to_copy.default"), nullptr};
  std::optional<EagerKey> key = eager_key(&row, arguments);
  if (!key) {
    return "the card takes no argument of this kind";
  }
  EagerCall call(arguments);
  call.add(arguments[0], false);
  if (to.defined()) {
    call.add(arguments[1], true);
  }
  std::shared_ptr<const EagerPlan> plan = EagerCache::shared().find(*key);
  if (plan == nullptr) {
    plan = std::make_shared<const EagerPlan>(plan_call(row, "aten.copy_", call, {spec}, /*may_copy=*/false));
    EagerCache::shared().insert(std::move(*key), plan);
  }
  if (!plan->refusal.empty()) {
    return plan->refusal;
  }
  to = execute(*plan, call)[0];
  return "";
}

}  // namespace

std::string copy_on_card(const at::Tensor& from, const at::Tensor& to) {
  if (!eager_enabled()) {
    return kEagerIsOff;
  }
  const std::array<c10::IValue, 2> arguments = {from, to};
  at::Tensor written = to;
  return run_copy(arguments, spec_of(to), written);
}

std::optional<at::Tensor> cast_on_card(const at::Tensor& tensor, c10::ScalarType dtype) {
  if (!eager_enabled()) {
    return std::nullopt;
  }
  const std::array<c10::IValue, 2> arguments = {tensor, static_cast<int64_t>(dtype)};
  ResultSpec spec = spec_of(tensor);
  spec.dtype = dtype;
  if (!tensor.is_non_overlapping_and_dense()) {
    spec.stride = at::infer_dense_strides(tensor.sizes(), tensor.strides());
  }
  at::Tensor result;
  return run_copy(arguments, spec, result).empty() ? std::optional(result) : std::nullopt;
}

}  // namespace spyre::glue
