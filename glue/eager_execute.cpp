#include "glue/eager_execute.h"

#include "glue/kernels.h"

namespace spyre::glue {

std::vector<at::Tensor> execute(const EagerPlan& plan, const EagerCall& call) {
  const c10::Device device = call.tensors[0].device();
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

}  // namespace spyre::glue
