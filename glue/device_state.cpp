#include "glue/device_state.h"

#include <c10/util/Exception.h>

#include <array>
#include <mutex>

#include "glue/error.h"
#include "spyre/base/settings.h"

namespace spyre::glue {
namespace {

c10::DeviceIndex& thread_device() {
  thread_local c10::DeviceIndex index = static_cast<c10::DeviceIndex>(unwrap(read_int("LOCAL_RANK")));
  return index;
}

int& thread_stream(c10::DeviceIndex index) {
  thread_local std::array<int, Runtime::kMaxCards> ids = {};
  TORCH_INTERNAL_ASSERT(index >= 0 && index < Runtime::kMaxCards);
  return ids[static_cast<size_t>(index)];
}

/// Set once, while the extension loads.
std::function<void()>& pressure_hook() {
  static std::function<void()> hook;
  return hook;
}

c10::Stream pack(c10::DeviceIndex device, int id) {
  return c10::Stream(c10::Stream::UNSAFE, spyre_device(device), static_cast<c10::StreamId>(id));
}

// Most likely typing errors: said when a device is first used, as malformed values are.
void warn_of_unknown_settings() {
  std::string names;
  for (const UnknownSetting& unknown : unknown_settings()) {
    names += (names.empty() ? "" : ", ") + unknown.name + " (nearest: " + unknown.nearest + ")";
  }
  if (!names.empty()) {
    TORCH_WARN("the environment sets what is no setting of Spyre: ", names);
  }
}

}  // namespace

c10::DeviceIndex device_count() {
  return static_cast<c10::DeviceIndex>(unwrap(Runtime::instance().device_count()));
}

c10::DeviceIndex current_device() {
  return thread_device();
}

void set_current_device(c10::DeviceIndex index) {
  const c10::DeviceIndex count = device_count();
  TORCH_CHECK(
      index >= 0 && index < count, "Device index ", int(index), " out of range [0, ", int(count), ")",
      "\n  note AIU_WORLD_SIZE says how many cards are emulated, SPYRE_DEVICES which of them are visible");
  thread_device() = index;
}

void restore_device(c10::DeviceIndex index) noexcept {
  thread_device() = index;
}

c10::DeviceIndex resolve_index(c10::DeviceIndex index) {
  if (index == -1) {
    return current_device();
  }
  const c10::DeviceIndex count = device_count();
  TORCH_CHECK(
      index >= 0 && index < count, "Device index out of bounds. logical_device_id=", int(index),
      ", number of visible devices=", int(count),
      "\n  note AIU_WORLD_SIZE says how many cards are emulated, SPYRE_DEVICES which of them are visible");
  return index;
}

Card& card(c10::DeviceIndex index) {
  Card& found = *unwrap(Runtime::instance().card(index));
  static std::once_flag warned;
  std::call_once(warned, warn_of_unknown_settings);
  static std::array<std::once_flag, Runtime::kMaxCards> hooked;
  std::call_once(hooked[static_cast<size_t>(index)], [&] {
    found.allocator().set_pressure_callback([](Bytes) {
      if (pressure_hook()) {
        pressure_hook()();
      }
    });
  });
  return found;
}

void set_memory_pressure_hook(std::function<void()> hook) {
  pressure_hook() = std::move(hook);
}

c10::Stream current_stream(c10::DeviceIndex index) {
  const c10::DeviceIndex device = resolve_index(index);
  return pack(device, thread_stream(device));
}

c10::Stream default_stream(c10::DeviceIndex index) {
  return pack(resolve_index(index), 0);
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::DeviceIndex device = resolve_index(stream.device_index());
  const c10::Stream before = pack(device, thread_stream(device));
  thread_stream(device) = static_cast<int>(stream.id());
  return before;
}

StreamRef stream_of(const c10::Stream& stream) {
  SPYRE_CHECK(stream.device_type() == c10::kPrivateUse1, "PyTorch hands each backend its own streams");
  return unwrap(card(stream.device_index()).streams().find(static_cast<int>(stream.id())));
}

c10::Stream new_stream(c10::DeviceIndex index, int priority) {
  const c10::DeviceIndex device = resolve_index(index);
  return pack(device, card(device).streams().next(priority)->id());
}

}  // namespace spyre::glue
