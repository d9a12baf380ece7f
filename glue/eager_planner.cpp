#include "glue/eager_planner.h"

#include <algorithm>
#include <set>

#include "glue/error.h"
#include "glue/precompiled.h"
#include "glue/tensor_access.h"
#include "spyre/base/settings.h"
#include "spyre/forms/form.h"

namespace spyre::glue {
namespace {

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
      made = compile_any(plan, may_copy);
    }
    if (!made.ok()) {
      plan.refusal = made.error().to_string();
    }
    return plan;
  }

 private:
  /// Why a plan is made again with a result of its own, which is copied then. Nobody reads it.
  static constexpr const char* kReadsWhatItWrites = "it reads what it writes";

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
  bool may_write_arguments(const EagerPlan& plan, const Graph& graph) const {
    for (const EagerPlan::Target& target : plan.targets) {
      for (const at::Tensor& other : call_.tensors) {
        if (written(target).is_alias_of(other) && !is_same_view(written(target), other)) {
          return false;
        }
      }
    }
    std::set<BufferId> done;
    for (const Node& node : graph.nodes) {
      for (const Instruction& instruction : node.body) {
        if (instruction.is_load() && done.contains(instruction.buffer)) {
          return false;
        }
      }
      if (graph.buffers[static_cast<size_t>(node.target)].is_input) {
        done.insert(node.target);
      }
    }
    return true;
  }

  /// An operator writes into the arguments it is given. A result of its own, which is copied there, it has where it reads
  /// them through another view, which a graph does not know, and where it scatters along their sticks: what a scatter leaves
  /// alone is there before it only in a result that begins as a copy.
  Status compile_any(EagerPlan& plan, bool may_copy) const {
    if (call_.written.empty()) {
      return compile_into(plan, /*direct=*/false);
    }
    Status made = compile_into(plan, /*direct=*/true);
    return made.ok() || !may_copy ? made : compile_into(plan, /*direct=*/false);
  }

  Status compile_into(EagerPlan& plan, bool direct) const {
    CallGraph made(name_);
    for (EagerPlan::Target& target : plan.targets) {
      target.direct = direct;
      if (direct) {
        made.add_result(written(target));
      } else {
        if (target.written >= 0) {
          target.spec.stride = spyre::contiguous_strides(target.spec.size);
        }
        made.add_result(target.spec);
      }
    }
    SPYRE_TRY(made.expand(*row_.form, call_.arguments));
    if (direct && !may_write_arguments(plan, made.graph())) {
      return forms::refuse(kReadsWhatItWrites);
    }
    SPYRE_TRY(verify(made.graph()));
    note_compilation(made.graph(), Compiles::kEagerOperator);
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

}  // namespace

EagerPlan plan_call(const EagerRow& row, std::string name, const EagerCall& call,
                    std::vector<ResultSpec> specs, bool may_copy) {
  return Planner(row, std::move(name), call, std::move(specs)).run(may_copy);
}

}  // namespace spyre::glue
