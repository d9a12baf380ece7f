#pragma once

#include "spyre/runtime/card.h"
#include "spyre/runtime/launch.h"
#include "tests/lx/planned_run.h"

/// Compiled graphs on a whole card: loaded, launched in stream order, bundle by bundle.
namespace spyre::lx_test {

inline std::unique_ptr<Card> make_card(CardOptions options) {
  return std::make_unique<Card>(0, std::shared_ptr<Device>(make_memory_device(spyre_card()).value()),
                                options);
}

/// A kernel with its arguments in device memory; inputs hold what `run` (planned_run.h) gives them.
class LoadedKernel {
 public:
  LoadedKernel(Card& card, const CompiledGraph& compiled) : card_(card), compiled_(compiled) {
    constexpr std::string_view kCode = "spyreCodeDir/";
    std::map<std::string, std::string> files;
    for (const auto& [name, text] : compiled.bundle.files) {
      if (name.starts_with(kCode)) files[name.substr(kCode.size())] = text;
    }
    plan_ = prepare_kernel(card, files, {.kernel_name = compiled.graph.name}).value();
    if (compiled.caller_pool > Bytes(0))
      tensors_.push_back({card.allocate(compiled.caller_pool).value(), {}});
    first_ = tensors_.size();
    for (size_t i = 0; i < compiled.arguments.size(); ++i) {
      const KernelArgument& a = compiled.arguments[i];
      if (a.role == KernelArgument::Role::kConstant) continue;  // they come last, and the plan makes them
      tensors_.push_back({card.allocate(a.layout.byte_size().value()).value(), a.size});
      if (a.role != KernelArgument::Role::kOutput) send(i);
    }
  }

  Status launch(const StreamRef& stream) const {
    return spyre::launch(plan_, tensors_, stream, Blocking::kYes);
  }
  Status launch() const { return launch(card_.streams().default_stream()); }

  std::vector<std::vector<std::byte>> outputs() const {
    std::vector<std::vector<std::byte>> out;
    for (size_t i = 0; i < compiled_.arguments.size(); ++i) {
      const KernelArgument& a = compiled_.arguments[i];
      if (a.role != KernelArgument::Role::kOutput) continue;
      std::vector<std::byte> host(static_cast<size_t>(numel_of(a.size) * info_of(a.dtype).host_bytes));
      const HostBuffer target{host.data(), a.dtype, a.size, contiguous_strides(a.size)};
      const Status fetched = transfer(
          card_.streams().next(0), MemoryView::whole(tensors_[first_ + i].memory), TransferDirection::kToHost,
          [&](std::span<std::byte> device) { return unpack(device, a.layout, view_of(a), target); },
          Blocking::kYes);
      SPYRE_CHECK(fetched.ok(), "outputs come back");
      out.push_back(std::move(host));
    }
    return out;
  }
  exec::Traffic traffic() const { return plan_->last_run_counts().total().traffic; }
  size_t programs() const { return plan_->last_programs().size(); }

 private:
  static ViewGeometry view_of(const KernelArgument& a) {
    return ViewGeometry::whole(a.size, contiguous_strides(a.size));
  }

  void send(size_t i) {
    const KernelArgument& a = compiled_.arguments[i];
    const std::vector<std::byte> host = host_values(a, static_cast<unsigned>(i) + 1);
    const ConstHostBuffer source{host.data(), a.dtype, a.size, contiguous_strides(a.size)};
    const Status sent = transfer(
        card_.streams().default_stream(), MemoryView::whole(tensors_[first_ + i].memory),
        TransferDirection::kToDevice,
        [&](std::span<std::byte> device) { return pack(source, a.layout, view_of(a), device); },
        Blocking::kYes);
    SPYRE_CHECK(sent.ok(), "inputs go out");
  }

  Card& card_;
  const CompiledGraph& compiled_;
  JobPlanRef plan_;
  std::vector<LaunchTensor> tensors_;  // the pool first, if there is one
  size_t first_ = 0;                   // of the arguments among them
};

}  // namespace spyre::lx_test
