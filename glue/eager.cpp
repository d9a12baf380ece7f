#include "glue/eager.h"

#include <ATen/MemoryOverlap.h>

#include <algorithm>

#include "glue/eager_execute.h"
#include "glue/eager_index.h"
#include "glue/eager_planner.h"
#include "glue/eager_positions.h"
#include "glue/eager_rules.h"
#include "glue/eager_steps.h"
#include "glue/error.h"
#include "glue/fallback.h"
#include "glue/kernels.h"
#include "spyre/base/settings.h"
#include "spyre/forms/forms.h"

namespace spyre::glue {
namespace {

/// True when an `out` tensor had another size than the result and got it.
bool resize_written(const EagerPlan& plan, const EagerCall& call) {
  bool resized = false;
  for (const EagerPlan::Target& target : plan.targets) {
    if (target.written < 0) {
      continue;
    }
    const at::Tensor& tensor = call.tensors[static_cast<size_t>(target.written)];
    if (tensor.sizes() == target.spec.size) {
      continue;
    }
    resize_to_write(tensor, target.spec.size);
    resized = true;
  }
  return resized;
}

/// Whether every element of the result depends on its own operands only, and PyTorch says so of overlapping ones.
bool writes_each_element(forms::Form form) {
  return form != &forms::fill_masked && form != &forms::add_matmul && form != &forms::triangle &&
         form != &forms::index_copy && form != &forms::index_put;
}

/// As PyTorch's own in-place operators do: raises where one element would be written twice, or read after it was.
void check_overlap(const EagerCall& call) {
  for (const int position : call.written) {
    const at::Tensor& written = call.tensors[static_cast<size_t>(position)];
    at::assert_no_internal_overlap(written);
    for (const at::Tensor& read : call.tensors) {
      at::assert_no_partial_overlap(written, read);
    }
  }
}

/// x[i, j] by parts, rows and columns. Nothing for other calls, and where the card refuses one of the steps.
std::optional<Tensors> index_of_several(const forms::FormRow& form, Arguments arguments) {
  if (form.form != &forms::index || arguments[0].toTensor().numel() == 0) {
    return std::nullopt;
  }
  size_t given = 0;
  for (const c10::IValue& index : arguments[1].toListRef()) {
    given += index.isTensor() && index.toTensor().defined() ? 1 : 0;
  }
  return given < 2 ? std::nullopt : take_steps([&] { return index_by_axes(arguments); }).results;
}

/// spyre::attention is spyre.attention, as graphs name it. Without a namespace it is ATen's.
std::string with_dot(std::string_view name) {
  const size_t colons = name.find("::");
  const bool atens = colons == std::string_view::npos;
  const std::string_view space = atens ? "aten" : name.substr(0, colons);
  return c10::str(space, ".", atens ? name : name.substr(colons + 2));
}

/// The boxed kernel of one form of one operator.
class EagerOperator final : public c10::OperatorKernel {
 public:
  explicit EagerOperator(EagerRow row) : row_(row) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    while (true) {
      const size_t count = op.schema().arguments().size();
      const Arguments arguments(stack->data() + (stack->size() - count), count);
      const EagerCall call = read_call(op.schema(), arguments);
      if (!row_.functional.empty() && writes_each_element(row_.form->form)) {
        check_overlap(call);
      }
      if (!eager_enabled()) {
        cpu_fallback(op, stack, kEagerIsOff);
        return;
      }
      if (std::optional<at::Tensor> selected = index_by_mask(*row_.form, arguments)) {
        torch::jit::drop(stack, count);
        stack->emplace_back(std::move(*selected));
        return;
      }
      if (std::optional<Tensors> found = index_of_several(*row_.form, arguments)) {
        finish_steps(op, stack, std::move(*found));
        return;
      }
      std::optional<EagerKey> key = eager_key(this, arguments);
      if (!key) {
        cpu_fallback(op, stack, "the card takes no argument of this kind");
        return;
      }
      const std::shared_ptr<const EagerPlan> plan = plan_of(op, call, std::move(*key));
      if (!plan->refusal.empty()) {
        if (!plan->wrong_arguments && run_refused_in_steps(*row_.form, op, stack)) {
          return;
        }
        cpu_fallback(op, stack, plan->refusal,
                     plan->wrong_arguments ? FallbackCause::kWrongArguments : FallbackCause::kNoKernel);
        return;
      }
      if (resize_written(*plan, call)) {
        continue;
      }
      if (plan->kernel != nullptr && !positions_fit(*row_.form, arguments)) {
        cpu_fallback(op, stack, "a position outside the tensor", FallbackCause::kWrongArguments);
        return;
      }
      std::vector<at::Tensor> results = execute(*plan, call);
      torch::jit::drop(stack, count);
      for (at::Tensor& result : results) {
        stack->emplace_back(std::move(result));
      }
      return;
    }
  }

 private:
  std::shared_ptr<const EagerPlan> plan_of(const c10::OperatorHandle& op, const EagerCall& call,
                                           EagerKey key) const {
    std::shared_ptr<const EagerPlan> plan = EagerCache::shared().find(key);
    if (plan == nullptr) {
      plan = std::make_shared<const EagerPlan>(make_plan(op, call));
      EagerCache::shared().insert(std::move(key), plan);
    }
    return plan;
  }

  EagerPlan make_plan(const c10::OperatorHandle& op, const EagerCall& call) const {
    const auto refused = [](std::string why) {
      EagerPlan plan;
      plan.refusal = std::move(why);
      return plan;
    };
    SPYRE_CHECK(!call.tensors.empty(), "a call that comes here has a tensor on the card");
    const size_t results = op.schema().returns().size();
    SPYRE_CHECK(call.written.empty() || call.written.size() == results,
                "out tensors are on the call's device");
    std::vector<ResultSpec> specs;
    try {
      specs = row_.results(op, call.arguments);
    } catch (const c10::Error& error) {
      EagerPlan plan = refused(std::string("its results are unknown: ") + error.what_without_backtrace());
      plan.wrong_arguments = true;
      return plan;
    } catch (const std::exception& error) {
      EagerPlan plan = refused(std::string("its results are unknown: ") + error.what());
      plan.wrong_arguments = true;
      return plan;
    }
    check_result_type(call);
    std::string name = with_dot(op.schema().name());
    if (!op.schema().overload_name().empty()) {
      name += "." + op.schema().overload_name();
    }
    return plan_call(row_, std::move(name), call, std::move(specs), /*may_copy=*/true);
  }

  /// An in-place operator keeps the type of its tensor: what it computes must be castable to that. PyTorch's own
  /// description of `mul_` forgets to ask.
  void check_result_type(const EagerCall& call) const {
    const std::string_view name = row_.functional;
    if (name.empty() || row_.results != &by_meta) {
      return;
    }
    const size_t dot = std::min(name.find('.'), name.size());
    const std::string overload(name.substr(std::min(dot + 1, name.size())));
    const c10::OperatorHandle functional = c10::Dispatcher::singleton().findSchemaOrThrow(
        ("aten::" + std::string(name.substr(0, dot))).c_str(), overload.c_str());
    const c10::ScalarType found = by_meta(functional, call.arguments)[0].dtype;
    const c10::ScalarType kept = call.arguments[0].toTensor().scalar_type();
    TORCH_CHECK(c10::canCast(found, kept), "result type ", found,
                " can't be cast to the desired output type ", kept);
  }

  const EagerRow row_;
};

}  // namespace

bool eager_enabled() {
  static const bool enabled = unwrap(read_bool("SPYRE_EAGER"));
  return enabled;
}

namespace {

/// What the operator means, by the first of its names that PyTorch has.
const forms::FormRow* form_of(std::string_view functional, std::string_view in_place, std::string_view out) {
  std::string name(!functional.empty() ? functional : !in_place.empty() ? in_place : out);
  name = with_dot(name) + (name.find('.') == std::string::npos ? ".default" : "");
  const forms::FormRow* form = forms::find_form(name);
  SPYRE_CHECK(form != nullptr, "eager_table.def names operators that spyre/forms/table.def has: " + name);
  return form;
}

}  // namespace

void register_eager(torch::Library& library, std::string_view name_space) {
  const auto add = [&](const char* name, const EagerRow& row) {
    const size_t colons = std::string_view(name).find("::");
    const std::string_view own = colons == std::string_view::npos ? "aten" : std::string_view(name, colons);
    if (*name == '\0' || own != name_space) {
      return;
    }
    library.impl(name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<EagerOperator>(row)));
  };
  const auto add_variants = [&](const char* functional, const char* in_place, const char* out,
                                ResultRule results) {
    const forms::FormRow* form = form_of(functional, in_place, out);
    add(functional, {form, results});
    add(in_place, {form, results, functional});
    add(out, {form, results});
  };
#define SPYRE_EAGER(functional, in_place, out, results) add_variants(functional, in_place, out, &results);
#include "glue/eager_table.def"
}

}  // namespace spyre::glue
