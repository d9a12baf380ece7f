#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "glue/kernel_artifact.h"
#include "spyre/driver/compile.h"
#include "spyre/runtime/job_plan.h"

namespace spyre::glue {

/// A compiled graph that tensors can be passed to, compiled here or read back. Prepared on a card when it first runs there.
///
/// Any thread; launches go to the current stream of the tensors' card.
class CompiledKernel {
 public:
  explicit CompiledKernel(CompiledGraph compiled);
  explicit CompiledKernel(KernelArtifact read);

  /// What the compiler found out on the way, without the bundle. Refused for a kernel that was read back.
  const CompiledGraph& compiled() const;
  bool was_read() const { return !compiled_; }
  const Bundle& bundle() const { return artifact_->bundle; }
  /// Names of the tensors `run` takes, in order.
  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  const KernelArgument& argument(const std::string& name) const;

  /// Inputs that the kernel also writes.
  const std::vector<std::string>& written_inputs() const { return artifact_->written_inputs; }

  /// Queues one run. Every tensor must have the layout the kernel was compiled for; refused otherwise.
  void run(std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs);

  /// The same for inputs that lie as they please: guards see to most of them, but gradients and saved activations are
  /// not known when their graph is compiled. One that lies otherwise is copied, and back where the kernel writes it.
  void run_fitted(std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs);

  /// The plan on a card, made if it has not run there yet.
  JobPlanRef plan(c10::DeviceIndex device);

 private:
  struct OnCard {
    JobPlanRef plan;
    MemoryRef pool;  // what several bundles share; launches of one plan never overlap, so neither do its uses
  };
  std::shared_ptr<const OnCard> on_card(c10::DeviceIndex device);

  void name_arguments();

  std::optional<CompiledGraph> compiled_;  // none: read back
  std::shared_ptr<const KernelArtifact> artifact_;
  std::vector<std::string> input_names_, output_names_;
  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::shared_ptr<const OnCard>> cards_;
};

}  // namespace spyre::glue
