// The device guard: how PyTorch switches cards and streams and works with events.

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "glue/device_state.h"
#include "glue/dtype.h"
#include "glue/error.h"

namespace spyre::glue {
namespace {

void require_spyre(c10::Device device) {
  SPYRE_CHECK(device.type() == c10::kPrivateUse1, "PyTorch hands each guard its own devices");
}

Event* event_of(void* event) {
  return static_cast<Event*>(event);
}

struct SpyreGuardImpl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }

  c10::Device getDevice() const override { return spyre_device(current_device()); }

  void setDevice(c10::Device device) const override {
    require_spyre(device);
    if (device.index() != -1) {
      set_current_device(device.index());
    }
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() != -1) {
      restore_device(device.index());
    }
  }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    const Result<int> count = Runtime::instance().device_count();
    return count.ok() ? static_cast<c10::DeviceIndex>(count.value()) : 0;
  }

  c10::DeviceCapability getDeviceCapability(c10::Device /*device*/) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    auto& types = capability.capability_data.supported_scalar_types;
    types.has_Half = types.has_BFloat16 = types.has_Float = types.has_Bool = 1;
    types.has_Char = types.has_Byte = types.has_Short = types.has_Int = types.has_Long = 1;
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override { return current_stream(device.index()); }
  c10::Stream getDefaultStream(c10::Device device) const override { return default_stream(device.index()); }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return new_stream(device.index(), priority);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return new_stream(device.index(), high_priority ? -1 : 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }

  bool queryStream(const c10::Stream& stream) const override { return unwrap(stream_of(stream)->query()); }
  void synchronizeStream(const c10::Stream& stream) const override {
    check(stream_of(stream)->synchronize());
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex index = resolve_index(device);
    if (Runtime::instance().started()) {
      check(card(index).synchronize());
    }
  }
  /// A stream has no address; its id names it.
  void* getStreamNativeHandle(c10::Stream stream) const override {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(stream.id()));  // NOLINT
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex device,
              c10::EventFlag /*flag*/) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "an event of device ", int(device),
                " cannot be recorded on a stream of device ", int(stream.device_index()));
    if (*event == nullptr) {
      *event = new Event;
    }
    check(event_of(*event)->record(stream_of(stream)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) {
      check(event_of(event)->block(stream_of(stream)));
    }
  }
  bool queryEvent(void* event) const override { return event == nullptr || unwrap(event_of(event)->query()); }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      check(event_of(event)->synchronize());
    }
  }
  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    delete event_of(event);
  }
  double elapsedTime(void* start, void* end, c10::DeviceIndex /*device*/) const override {
    TORCH_CHECK(start != nullptr && end != nullptr,
                "Both events must be recorded before calculating elapsed time.");
    return unwrap(event_of(start)->elapsed_ms(*event_of(end)));
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, SpyreGuardImpl);

}  // namespace
}  // namespace spyre::glue
