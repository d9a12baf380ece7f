#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>

#include "spyre/runtime/runtime.h"

namespace spyre::glue {

/// Which card and which stream this thread works with. Nothing here starts the runtime except `card` and
/// `stream_of`.

inline c10::Device spyre_device(c10::DeviceIndex index) {
  return c10::Device(c10::kPrivateUse1, index);
}

/// Cards the process sees; from the environment, without starting anything. 0 when a setting is malformed is
/// never answered: that is an error.
c10::DeviceIndex device_count();

/// The thread's current device; starts as LOCAL_RANK.
c10::DeviceIndex current_device();
/// Refuses an index that is not in [0, device_count).
void set_current_device(c10::DeviceIndex index);
/// Sets it without looking; for destructors of guards, which must not throw.
void restore_device(c10::DeviceIndex index) noexcept;

/// Replaces -1 (`device("spyre")`) by the current device and checks the range.
c10::DeviceIndex resolve_index(c10::DeviceIndex index);

/// The card, started if need be.
Card& card(c10::DeviceIndex index);

/// Called, with no lock held, when a card has no room: the bindings collect Python's garbage here.
void set_memory_pressure_hook(std::function<void()> hook);

/// The thread's current stream on a card, and its change.
c10::Stream current_stream(c10::DeviceIndex index);
c10::Stream default_stream(c10::DeviceIndex index);
c10::Stream exchange_stream(c10::Stream stream);
/// The runtime's stream behind PyTorch's.
StreamRef stream_of(const c10::Stream& stream);
/// The next stream of the low (priority 0) or high (any other) pool.
c10::Stream new_stream(c10::DeviceIndex index, int priority);

}  // namespace spyre::glue
