#include "glue/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty_like.h>

#include <array>
#include <mutex>

#include "glue/device_state.h"

namespace spyre::glue {
namespace {

class SpyreGeneratorImpl final : public c10::GeneratorImpl {
 public:
  SpyreGeneratorImpl(c10::DeviceIndex index, at::Generator host)
      : c10::GeneratorImpl(spyre_device(index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host_(std::move(host)) {}

  const at::Generator& host() const { return host_; }

  void set_current_seed(uint64_t seed) override { host_.set_current_seed(seed); }
  uint64_t current_seed() const override { return host_.current_seed(); }
  uint64_t seed() override { return host_.seed(); }
  void set_offset(uint64_t /*offset*/) override { TORCH_CHECK(false, "Spyre Generator does not use offset"); }
  uint64_t get_offset() const override { TORCH_CHECK(false, "Spyre Generator does not use offset"); }
  void set_state(const c10::TensorImpl& state) override { host_.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  SpyreGeneratorImpl* clone_impl() const override {
    return new SpyreGeneratorImpl(device().index(), host_.clone());
  }

  at::Generator host_;
};

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex index) {
  const c10::DeviceIndex device = resolve_index(index);
  static std::mutex mutex;
  static std::array<at::Generator, Runtime::kMaxCards> generators;
  const std::lock_guard lock(mutex);
  at::Generator& generator = generators[static_cast<size_t>(device)];
  if (!generator.defined()) {
    generator = make_generator(device);
    generator.seed();
  }
  return generator;
}

at::Generator make_generator(c10::DeviceIndex index) {
  return at::make_generator<SpyreGeneratorImpl>(resolve_index(index), at::detail::createCPUGenerator());
}

at::Generator host_generator(const at::Generator& generator) {
  const auto* impl = dynamic_cast<const SpyreGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
  return impl != nullptr ? impl->host() : generator;
}

void draw(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const at::Tensor card = (*stack)[first].toTensor();
  (*stack)[first] = at::empty_like(card, card.options().device(c10::kCPU));
  c10::IValue& generator = stack->back();  // the last argument of them all
  generator =
      host_generator(generator.isNone() ? default_generator(card.device().index()) : generator.toGenerator());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  card.copy_(stack->back().toTensor());
  stack->back() = card;
}

}  // namespace spyre::glue
