// The older of PyTorch's profilers, which puts events around operators (`use_kineto=False`).

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "glue/device_state.h"
#include "glue/error.h"

namespace spyre::glue {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

struct SpyreStubs final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    const c10::DeviceIndex index = current_device();
    if (device != nullptr) {
      *device = index;
    }
    if (cpu_ns != nullptr) {
      *cpu_ns = c10::getTime();
    }
    auto made = std::make_shared<Event>();
    check(made->record(stream_of(current_stream(index))));
    *event = std::move(made);
  }

  /// Microseconds.
  float elapsed(const ProfilerVoidEventStub* begin, const ProfilerVoidEventStub* end) const override {
    const auto* const from = static_cast<const Event*>(begin->get());
    const auto* const to = static_cast<const Event*>(end->get());
    check(from->synchronize());
    check(to->synchronize());
    return static_cast<float>(unwrap(from->elapsed_ms(*to)) * 1000);
  }

  // Marks and ranges are for tools that look at a device from outside; there are none.
  void mark(const char* /*name*/) const override {}
  void rangePush(const char* /*name*/) const override {}
  void rangePop() const override {}

  bool enabled() const override { return true; }

  void onEachDevice(std::function<void(int)> visit) const override {
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
      visit(i);
    }
  }

  void synchronize() const override { check(Runtime::instance().synchronize()); }
};

SpyreStubs stubs;
const bool registered = [] {
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  return true;
}();

}  // namespace
}  // namespace spyre::glue
