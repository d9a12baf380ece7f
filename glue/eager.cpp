#include "glue/eager.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <array>

#include "glue/eager_copies.h"
#include "glue/eager_index.h"
#include "glue/eager_planner.h"
#include "glue/eager_positions.h"
#include "glue/eager_rules.h"
#include "glue/eager_steps.h"
#include "glue/error.h"
#include "glue/fallback.h"
#include "glue/kernels.h"
#include "glue/tensor_access.h"
#include "spyre/base/settings.h"
#include "spyre/forms/forms.h"
#include "spyre/layout/dense_tensor.h"

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
    resize_(tensor, target.spec.size, std::nullopt);
    resized = true;
  }
  return resized;
}

/// True when a tensor that an operator reads and writes lay in an order of its own and now lies as a fresh one.
bool settle_written(const EagerCall& call) {
  bool settled = false;
  for (const int position : call.written) {
    settled |= settle(call.tensors[static_cast<size_t>(position)]);
  }
  return settled;
}

/// Queues the kernel and returns the operator's results.
std::vector<at::Tensor> execute(const EagerPlan& plan, const EagerCall& call, c10::Device device) {
  std::vector<at::Tensor> inputs, outputs, results;
  for (const EagerPlan::Target& target : plan.targets) {
    const ResultSpec& spec = target.spec;
    if (spec.absent) {
      results.emplace_back();
    } else if (!target.direct && plan.kernel != nullptr && spec.has_elements()) {
      outputs.push_back(empty_with_layout(spec.size, spec.stride, spec.dtype, target.layout, device));
      results.push_back(outputs.back());
    } else if (target.written < 0) {
      results.push_back(
          empty_strided(spec.size, spec.stride, spec.dtype, std::nullopt, device, std::nullopt));
    } else {
      results.push_back(call.tensors[static_cast<size_t>(target.written)]);
    }
  }
  if (plan.kernel == nullptr) {
    return results;
  }
  for (const int position : plan.inputs) {
    inputs.push_back(call.tensors[static_cast<size_t>(position)]);
  }
  plan.kernel->run(inputs, outputs);
  for (size_t i = 0; i < plan.targets.size(); ++i) {
    const EagerPlan::Target& target = plan.targets[i];
    if (target.written < 0 || target.direct || !target.spec.has_elements()) {
      continue;
    }
    const at::Tensor& written = call.tensors[static_cast<size_t>(target.written)];
    copy_from(results[i], written, /*non_blocking=*/false);
    results[i] = written;
  }
  return results;
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
      if (!plan->refusal.empty() && settle_written(call)) {
        continue;
      }
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
      std::vector<at::Tensor> results = run(op.schema(), *plan, call);
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

  static std::vector<at::Tensor> run(const c10::FunctionSchema& schema, const EagerPlan& plan,
                                     const EagerCall& call) {
    const c10::Device device = call.tensors[0].device();
    if (plan.copies.empty()) {
      return execute(plan, call, device);
    }
    const Copies copies = make_copies(call.tensors, plan.copies);
    const std::vector<c10::IValue> arguments = with_copies(call.arguments, copies);
    return execute(plan, read_call(schema, arguments), device);
  }

  /// A plan that runs on copies of operands, where that is what it takes: a 32-bit tensor that is transposed beside
  /// others, say, which only a kernel of copies can restickify.
  std::optional<EagerPlan> plan_on_copies(const c10::FunctionSchema& schema, const std::string& name,
                                          const EagerCall& call, const std::vector<ResultSpec>& specs) const {
    for (const CopyForm form : {CopyForm::kPlain, CopyForm::kSqueezed}) {
      std::vector<OperandCopy> wanted = wanted_copies(call.tensors, only_read(call), form);
      const Copies copies = make_copies(call.tensors, wanted);
      if (copies.empty()) {
        continue;
      }
      const std::vector<c10::IValue> arguments = with_copies(call.arguments, copies);
      const EagerCall copied = read_call(schema, arguments);
      EagerPlan plan = plan_call(row_, name, copied, specs, /*may_copy=*/true);
      if (plan.refusal.empty()) {
        plan.copies = std::move(wanted);
        return plan;
      }
    }
    return std::nullopt;
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
    EagerPlan plan = plan_call(row_, name, call, specs, /*may_copy=*/true);
    if (!plan.refusal.empty() || makes_what_cannot_be_restickified(plan)) {
      std::optional<EagerPlan> on_copies = plan_on_copies(op.schema(), name, call, specs);
      if (on_copies && (!plan.refusal.empty() || !makes_what_cannot_be_restickified(*on_copies))) {
        plan = std::move(*on_copies);
      }
    }
    return plan;
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
  to = execute(*plan, call, call.tensors[0].device())[0];
  return "";
}

std::string run_copy_into(const at::Tensor& from, at::Tensor to) {
  const std::array<c10::IValue, 2> arguments = {from, to};
  return run_copy(arguments, spec_of(to), to);
}

bool copies_into(const at::Tensor& from, const at::Tensor& to) {
  return run_copy_into(from, to).empty();
}

/// A view that does not follow the rows of what it shows may follow them where those lie in order.
bool copy_by_rows(const at::Tensor& from, const at::Tensor& to) {
  const DeviceLayout layout = layout_of(from);
  const StorageContext* context = context_of(*from.storage().unsafeGetStorageImpl());
  const int64_t elements = context != nullptr && context->image ? context->image->numel : 0;
  const std::optional<DenseTensor> dense = dense_tensor(layout, elements);
  if (!dense) {
    return false;
  }
  const at::Tensor ordered = at::empty(dense->size, from.options());
  return layout_of(ordered) != layout &&
         copies_into(from.as_strided(dense->size, dense->stride, 0), ordered) &&
         copies_into(ordered.as_strided(from.sizes(), from.strides(), from.storage_offset()), to);
}

/// Rows that the view joins, and that a restickify has to find joined: they are, in a copy of the view in its own order.
bool copy_by_view(const at::Tensor& from, const at::Tensor& to) {
  const std::vector<int64_t> order = memory_order(from);
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  const at::Tensor rows = from.permute(order);
  std::vector<int64_t> size, stride;  // of the rows, those that follow one another joined
  for (int64_t d = 0; d < rows.dim(); ++d) {
    if (!size.empty() && stride.back() == rows.size(d) * rows.stride(d)) {
      size.back() *= rows.size(d);
      stride.back() = rows.stride(d);
    } else {
      size.push_back(rows.size(d));
      stride.push_back(rows.stride(d));
    }
  }
  const at::Tensor joined = at::empty(size, from.options());
  return layout_of(joined) != layout_of(from) &&
         copies_into(rows.as_strided(size, stride, rows.storage_offset()), joined) &&
         copies_into(joined.view(rows.sizes()).permute(back), to);
}

/// A tensor whose strides do not fall may lie as a fresh one of its size does, which more kernels write.
bool copy_by_fresh(const at::Tensor& from, const at::Tensor& to) {
  if (to.is_contiguous()) {
    return false;
  }
  const at::Tensor fresh = at::empty(to.sizes(), to.options());
  return copies_into(from, fresh) && copies_into(fresh, to);
}

}  // namespace

std::string copy_on_card(const at::Tensor& from, const at::Tensor& to) {
  if (!eager_enabled()) {
    return kEagerIsOff;
  }
  const std::string refusal = run_copy_into(from, to);
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const bool copied =
      refusal.empty() || copy_by_rows(from, to) || copy_by_view(from, to) || copy_by_fresh(from, to);
  return copied ? "" : refusal;
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
  if (run_copy(arguments, spec, result).empty()) {
    return result;
  }
  // What lies otherwise than a fresh tensor may be copied first, and converted then.
  const std::vector<at::Tensor> one = {tensor};
  for (const auto& [_, copy] : make_copies(one, wanted_copies(one, {0}, CopyForm::kPlain))) {
    const std::array<c10::IValue, 2> of_copy = {copy, static_cast<int64_t>(dtype)};
    if (run_copy(of_copy, spec, result).empty()) {
      return result;
    }
  }
  return std::nullopt;
}

}  // namespace spyre::glue
