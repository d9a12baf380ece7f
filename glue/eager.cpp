#include "glue/eager.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <array>
#include <set>

#include "glue/dense_tensor.h"
#include "glue/eager_cache.h"
#include "glue/eager_copies.h"
#include "glue/eager_positions.h"
#include "glue/eager_rules.h"
#include "glue/error.h"
#include "glue/fallback.h"
#include "glue/kernels.h"
#include "glue/tensor_access.h"
#include "spyre/base/settings.h"
#include "spyre/forms/forms.h"

namespace spyre::glue {
namespace {

/// One row of the table.
struct EagerRow {
  const forms::FormRow* form;
  ResultRule results;
  std::string_view functional = {};  ///< of an in-place form: the operator that says what type it computes
};

/// The arguments of one call. All its tensors are on one device, but for numbers (CPU tensors without
/// dimensions) that are only read; other mixtures raise what PyTorch raises for them on every device.
struct EagerCall {
  Arguments arguments;
  std::vector<at::Tensor> tensors;  ///< those on the card, lists unfolded, in order
  std::vector<int> written;         ///< positions of those the operator writes, in the order of its results

  explicit EagerCall(Arguments args) : arguments(args) {}

  void add(const c10::IValue& value, bool is_written) {
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

 private:
  void add(const at::Tensor& tensor, bool is_written) {
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

  std::optional<c10::Device> device_;
};

EagerCall read_call(const c10::FunctionSchema& schema, Arguments arguments) {
  EagerCall call(arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    call.add(arguments[i], alias != nullptr && alias->isWrite());
  }
  return call;
}

/// Makes the plan of a call that was not seen before.
class Planner {
 public:
  Planner(const EagerRow& row, std::string name, const EagerCall& call, std::vector<ResultSpec> specs)
      : row_(row), name_(std::move(name)), call_(call), specs_(std::move(specs)) {}

  EagerPlan run(bool may_copy) {
    EagerPlan plan;
    for (size_t i = 0; i < specs_.size(); ++i) {
      plan.targets.push_back({.spec = specs_[i], .written = call_.written.empty() ? -1 : call_.written[i]});
    }
    // What has the wrong size is resized first and then planned again.
    for (const EagerPlan::Target& target : plan.targets) {
      if (target.written >= 0 && written(target).sizes() != target.spec.size) {
        return plan;
      }
    }
    if (std::none_of(specs_.begin(), specs_.end(),
                     [](const ResultSpec& spec) { return spec.has_elements(); })) {
      return plan;
    }
    Status made = check_tensors();
    if (made.ok()) {
      made = compile_any(plan, may_copy, Views::kAlone);
      const bool has_parts = std::any_of(call_.tensors.begin(), call_.tensors.end(), is_part);
      if (!made.ok() && has_parts && compile_any(plan, may_copy, Views::kWhole).ok()) {
        return plan;
      }
    }
    if (!made.ok()) {
      plan.refusal = made.error().to_string();
    }
    return plan;
  }

 private:
  const at::Tensor& written(const EagerPlan::Target& target) const {
    return call_.tensors[static_cast<size_t>(target.written)];
  }

  Status check_tensors() const {
    for (const at::Tensor& tensor : call_.tensors) {
      if (tensor.numel() == 0) {
        continue;
      }
      const BaseImage* image = image_of(*tensor.storage().unsafeGetStorageImpl());
      if (image == nullptr || image->type != host_type_of(tensor.scalar_type())) {
        return forms::refuse("a tensor reads its storage as another dtype");
      }
    }
    for (const ResultSpec& spec : specs_) {
      if (spec.absent) {
        continue;
      }
      const std::optional<HostType> type = try_host_type(spec.dtype);
      if (!type) {
        return forms::refuse(c10::str("the card computes no ", spec.dtype));
      }
      SPYRE_TRY(forms::arithmetic_type(*type));
    }
    return Status();
  }

  /// Whether a kernel may write into its arguments: memory that it also reads must be the same elements, and
  /// nothing may be read after it was written.
  Status check_overlap(const EagerPlan& plan, const Graph& graph) const {
    for (const EagerPlan::Target& target : plan.targets) {
      for (const at::Tensor& other : call_.tensors) {
        if (written(target).is_alias_of(other) && !is_same_view(written(target), other)) {
          return forms::refuse("it writes into memory that it also reads");
        }
      }
    }
    std::set<BufferId> done;
    for (const Node& node : graph.nodes) {
      for (const Instruction& instruction : node.body) {
        if (instruction.is_load() && done.contains(instruction.buffer)) {
          return forms::refuse("a step reads what an earlier one has written over");
        }
      }
      if (graph.buffers[static_cast<size_t>(node.target)].is_input) {
        done.insert(node.target);
      }
    }
    return Status();
  }

  Status compile_any(EagerPlan& plan, bool may_copy, Views views) const {
    if (call_.written.empty()) {
      return compile_into(plan, /*direct=*/false, views);
    }
    Status made = compile_into(plan, /*direct=*/true, views);
    return made.ok() || !may_copy ? made : compile_into(plan, /*direct=*/false, views);
  }

  Status compile_into(EagerPlan& plan, bool direct, Views views) const {
    CallGraph made(name_, views);
    for (EagerPlan::Target& target : plan.targets) {
      target.direct = direct;
      if (direct) {
        made.add_result(written(target));
      } else {
        if (target.written >= 0) {
          target.spec.stride = contiguous_strides(target.spec.size);
        }
        made.add_result(target.spec);
      }
    }
    SPYRE_TRY(made.expand(*row_.form, call_.arguments));
    if (direct) {
      SPYRE_TRY(check_overlap(plan, made.graph()));
    }
    SPYRE_TRY(verify(made.graph()));
    const CompileOptions options = unwrap(CompileOptions::from_environment());
    SPYRE_ASSIGN_OR_RETURN(CompiledGraph compiled, compile(made.graph(), options));
    plan.kernel = std::make_shared<CompiledKernel>(std::move(compiled));
    bind(plan, made);
    return Status();
  }

  /// Which of the call's tensors the kernel takes, and how it lays out what it makes.
  void bind(EagerPlan& plan, const CallGraph& made) const {
    plan.inputs.clear();
    for (const std::string& name : plan.kernel->input_names()) {
      const at::Tensor& tensor = made.input(name);
      const auto at = std::find_if(call_.tensors.begin(), call_.tensors.end(),
                                   [&](const at::Tensor& t) { return t.is_same(tensor); });
      SPYRE_CHECK(at != call_.tensors.end(), "forms read only the call's own tensors");
      plan.inputs.push_back(static_cast<int>(at - call_.tensors.begin()));
    }
    size_t output = 0;
    for (size_t i = 0; i < plan.targets.size(); ++i) {
      if (plan.targets[i].direct || !plan.targets[i].spec.has_elements()) {
        continue;
      }
      const std::string& name = made.result_name(i);
      SPYRE_CHECK(plan.kernel->output_names()[output++] == name, "outputs come in the order of the results");
      plan.targets[i].layout = plan.kernel->argument(name).layout;
    }
  }

  const EagerRow& row_;
  std::string name_;
  const EagerCall& call_;
  std::vector<ResultSpec> specs_;
};

/// The positions of tensors that are only read.
std::vector<int> only_read(const EagerCall& call) {
  std::vector<int> positions;
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    const bool written = std::any_of(call.written.begin(), call.written.end(), [&](int w) {
      return call.tensors[static_cast<size_t>(w)].is_same(call.tensors[i]);
    });
    if (!written) {
      positions.push_back(static_cast<int>(i));
    }
  }
  return positions;
}

/// Whether the sticks of some 32-bit result run along another dimension than a fresh tensor's: the card could not turn
/// it beside others.
bool makes_unturnable(const EagerPlan& plan) {
  return std::any_of(plan.targets.begin(), plan.targets.end(), [&](const EagerPlan::Target& target) {
    if (target.direct || plan.kernel == nullptr || !target.spec.has_elements() ||
        target.spec.stride != contiguous_strides(target.spec.size) ||
        bits_of(target.layout.device_dtype) != 32) {
      return false;
    }
    const auto fresh = DeviceLayout::standard(target.spec.size, target.layout.device_dtype);
    return fresh.ok() && fresh.value().stride_map.back() != target.layout.stride_map.back();
  });
}

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

RefusedForm& refused_form() {
  static auto* form = new RefusedForm;  // never destroyed: it holds Python objects
  return *form;
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
        if (!plan->wrong_arguments && refused_form() && refused_form()(op, stack)) {
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
  /// others, say, which only a kernel of copies can turn.
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
      EagerPlan plan = Planner(row_, name, copied, specs).run(/*may_copy=*/true);
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
    if (call.tensors.empty()) {
      return refused("none of its tensors is on the card");
    }
    const size_t results = op.schema().returns().size();
    if (!call.written.empty() && call.written.size() != results) {
      return refused("an out tensor is not on the card");
    }
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
    EagerPlan plan = Planner(row_, name, call, specs).run(/*may_copy=*/true);
    if (!plan.refusal.empty() || makes_unturnable(plan)) {
      std::optional<EagerPlan> on_copies = plan_on_copies(op.schema(), name, call, specs);
      if (on_copies && (!plan.refusal.empty() || !makes_unturnable(*on_copies))) {
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

void set_refused_form(RefusedForm form) {
  refused_form() = std::move(form);
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
    plan =
        std::make_shared<const EagerPlan>(Planner(row, "aten.copy_", call, {spec}).run(/*may_copy=*/false));
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

/// Rows that the view joins, and that a turn has to find joined: they are, in a copy of the view in its own order.
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
