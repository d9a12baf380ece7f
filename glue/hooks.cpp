// The hooks by which PyTorch's own code asks about this backend.

#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "glue/device_state.h"
#include "glue/generator.h"
#include "glue/pinned_memory.h"
#include "glue/storage.h"

namespace spyre::glue {
namespace {

struct SpyreHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return spyre::glue::device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return Runtime::instance().started(); }
  /// Nothing to do: a card starts at its first use. PyTorch also calls this where no card is used at all, while it
  /// compiles for the CPU for one.
  void init() const override {}

  c10::DeviceIndex deviceCount() const override { return spyre::glue::device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = current_device();
    set_current_device(device);
    return before;
  }
  /// -1 leaves the device as it is.
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? current_device() : exchangeDevice(device);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return make_generator(device); }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }

  at::Device getDeviceFromPtr(void* data) const override {
    for (c10::DeviceIndex i = 0; Runtime::instance().started() && i < deviceCount(); ++i) {
      if (card(i).device().address_of(data).has_value()) {
        return spyre_device(i);
      }
    }
    SPYRE_CHECK(false, "asked only about memory of a card");
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
  }
};

const bool hooks_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new SpyreHooks);
  return true;
}();

}  // namespace
}  // namespace spyre::glue
