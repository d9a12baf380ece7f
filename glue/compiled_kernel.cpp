#include "glue/compiled_kernel.h"

#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>

#include "glue/device_state.h"
#include "glue/dtype.h"
#include "glue/error.h"
#include "glue/kernel_facts.h"
#include "glue/kernels.h"
#include "glue/storage.h"
#include "glue/tensor_access.h"
#include "spyre/runtime/launch.h"

namespace spyre::glue {
namespace {

constexpr std::string_view kCodeDirectory = "spyreCodeDir/";

// The files the runtime needs, under the names it knows them by.
std::map<std::string, std::string> code_files(const Bundle& bundle) {
  std::map<std::string, std::string> files;
  for (const auto& [name, content] : bundle.files) {
    if (name.starts_with(kCodeDirectory)) {
      files[name.substr(kCodeDirectory.size())] = content;
    }
  }
  return files;
}

LaunchTensor launch_tensor(const at::Tensor& tensor) {
  return {memory_behind(tensor), tensor.sizes().vec()};
}

void require_layout(const at::Tensor& tensor, const KernelArgument& argument) {
  TORCH_CHECK(tensor.device().is_privateuseone(), "kernel argument '", argument.name,
              "' must be on the card, found ", tensor.device());
  const DeviceLayout layout = layout_of(tensor);
  TORCH_CHECK(layout == argument.layout, "kernel argument '", argument.name, "' is laid out ",
              layout.to_string(), ", the kernel was compiled for ", argument.layout.to_string());
  const Bytes needed = unwrap(layout.byte_size());
  TORCH_CHECK(needed <= memory_behind(tensor)->requested(), "kernel argument '", argument.name,
              "' is laid out in ", needed.count(), " bytes, its storage has ",
              memory_behind(tensor)->requested().count());
}

/// Whether the tensor has the sizes of the argument; those that change from call to call, at most those of the program.
bool fits(c10::IntArrayRef size, const KernelArgument& argument) {
  if (!argument.is_open()) {
    return size == c10::IntArrayRef(argument.size);
  }
  bool fits = size.size() == argument.size.size();
  for (size_t d = 0; fits && d < size.size(); ++d) {
    fits = argument.open[d] ? size[d] <= argument.most[d] : size[d] == argument.size[d];
  }
  return fits;
}

/// Whether elements lie where the kernel looks for them. Of a tensor of fixed size, its layout tells.
bool has_strides(const at::Tensor& tensor, const KernelArgument& argument) {
  for (size_t d = 0; argument.is_open() && d < argument.size.size(); ++d) {
    if (tensor.size(static_cast<int64_t>(d)) > 1 &&
        tensor.stride(static_cast<int64_t>(d)) != argument.stride[d]) {
      return false;
    }
  }
  return true;
}

/// The tensor with zeros up to the sizes of the program: what lies behind it is read, if not looked at.
at::Tensor padded(const at::Tensor& tensor, const KernelArgument& argument) {
  std::vector<int64_t> behind;  // before and behind, the last dimension first
  for (size_t d = argument.most.size(); d-- > 0;) {
    behind.push_back(0);
    behind.push_back(argument.most[d] - tensor.size(static_cast<int64_t>(d)));
  }
  return argument.is_open() ? at::constant_pad_nd(tensor, behind, 0) : tensor;
}

/// An input as the kernel was compiled for it: the tensor itself, or a copy. What no copy makes fit is left to be refused.
at::Tensor fitted(const at::Tensor& tensor, const KernelArgument& argument) {
  const bool same_elements = tensor.device().is_privateuseone() && fits(tensor.sizes(), argument) &&
                             try_host_type(tensor.scalar_type()) == argument.dtype;
  if (!same_elements || (tensor.storage_offset() == argument.offset && has_strides(tensor, argument) &&
                         layout_of(tensor) == argument.layout)) {
    return tensor;
  }
  TORCH_CHECK(argument.offset == 0, "kernel argument '", argument.name, "' lies at element ",
              tensor.storage_offset(), " of its storage as ", layout_of(tensor).to_string(),
              ", the kernel was compiled for element ", argument.offset, " and ",
              argument.layout.to_string());
  const at::Tensor whole = empty_with_layout(argument.size, argument.stride, tensor.scalar_type(),
                                             argument.layout, tensor.device());
  as_strided(whole, argument.most, argument.stride, std::nullopt).copy_(padded(tensor, argument));
  return whole;
}

}  // namespace

CompiledKernel::CompiledKernel(CompiledGraph compiled)
    : compiled_(std::move(compiled)),
      artifact_(std::make_shared<const KernelArtifact>(artifact_of(*compiled_))) {
  name_arguments();
}

CompiledKernel::CompiledKernel(KernelArtifact read)
    : artifact_(std::make_shared<const KernelArtifact>(std::move(read))) {
  name_arguments();
}

const CompiledGraph& CompiledKernel::compiled() const {
  TORCH_CHECK(compiled_, "kernel '", artifact_->name,
              "' was read back from its artifact, which does not say what the compiler decided on the way");
  return *compiled_;
}

void CompiledKernel::name_arguments() {
  for (const KernelArgument& argument : artifact_->arguments) {
    if (argument.role == KernelArgument::Role::kInput) {
      input_names_.push_back(argument.name);
    }
    if (argument.role == KernelArgument::Role::kOutput) {
      output_names_.push_back(argument.name);
    }
  }
}

const KernelArgument& CompiledKernel::argument(const std::string& name) const {
  for (const KernelArgument& argument : artifact_->arguments) {
    if (argument.name == name) {
      return argument;
    }
  }
  TORCH_CHECK_INDEX(false, "kernel '", artifact_->name, "' has no argument '", name, "'");
}

std::shared_ptr<const CompiledKernel::OnCard> CompiledKernel::on_card(c10::DeviceIndex device) {
  const std::lock_guard lock(mutex_);
  // A plan that a failed stream did not load is made again, on the stream of today.
  if (const auto found = cards_.find(device); found != cards_.end() && found->second->plan->can_load()) {
    return found->second;
  }
  OnCard made;
  made.plan = unwrap(prepare_kernel(card(device), code_files(artifact_->bundle),
                                    {.stream = stream_of(current_stream(device)),
                                     .kernel_name = artifact_->name,
                                     .facts = std::make_shared<ArtifactFacts>(artifact_)}));
  if (artifact_->caller_pool > Bytes(0)) {
    made.pool = unwrap(card(device).allocate(
        artifact_->caller_pool, {.kind = MemoryKind::kProgram, .description = "pool of " + artifact_->name}));
  }
  return cards_[device] = std::make_shared<const OnCard>(std::move(made));
}

JobPlanRef CompiledKernel::plan(c10::DeviceIndex device) {
  return on_card(device)->plan;
}

void CompiledKernel::run(std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs) {
  TORCH_CHECK(inputs.size() == input_names_.size() && outputs.size() == output_names_.size(), "kernel '",
              artifact_->name, "' takes ", input_names_.size(), " inputs and ", output_names_.size(),
              " outputs, found ", inputs.size(), " and ", outputs.size());
  std::vector<LaunchTensor> tensors;
  size_t position = 0;
  c10::DeviceIndex device = current_device();
  for (const auto& group : {inputs, outputs}) {
    for (const at::Tensor& tensor : group) {
      require_layout(tensor, artifact_->arguments[position++]);
      device = tensor.device().index();
      tensors.push_back(launch_tensor(tensor));
    }
  }
  const std::shared_ptr<const OnCard> here = on_card(device);
  if (here->pool != nullptr) {
    tensors.insert(tensors.begin(), LaunchTensor{here->pool, {}});
  }
  check(launch(here->plan, std::move(tensors), stream_of(current_stream(device)), Blocking::kNo));
}

void CompiledKernel::run_fitted(std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs) {
  std::vector<at::Tensor> used;
  for (size_t i = 0; i < inputs.size(); ++i) {
    used.push_back(i < input_names_.size() ? fitted(inputs[i], artifact_->arguments[i]) : inputs[i]);
  }
  for (size_t i = 0; i < inputs.size() + outputs.size() && i < artifact_->arguments.size(); ++i) {
    const at::Tensor& tensor = i < inputs.size() ? inputs[i] : outputs[i - inputs.size()];
    const KernelArgument& argument = artifact_->arguments[i];
    TORCH_CHECK(!argument.is_open() || fits(tensor.sizes(), argument), "kernel argument '", argument.name,
                "' has sizes ", tensor.sizes(), ", the program takes at most ",
                c10::IntArrayRef(argument.most));
  }
  run(used, outputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!used[i].is_same(inputs[i]) &&
        std::ranges::find(artifact_->written_inputs, input_names_[i]) != artifact_->written_inputs.end()) {
      inputs[i].copy_(as_strided(used[i], inputs[i].sizes(), used[i].strides(), std::nullopt));
    }
  }
}

}  // namespace spyre::glue
