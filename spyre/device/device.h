#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/device/address.h"
#include "spyre/device/execute.h"
#include "spyre/device/hbm.h"
#include "spyre/device/host_window.h"

namespace spyre {

/// What the runtime may ask of a card. `device/conformance/` says, as tests, what each promise means; every
/// implementation registers there and lists, with a reason, what it cannot do.
///
/// A device allocates nothing: it has all its memory from the start, and the runtime's allocator decides who
/// uses which part. Members may be called from any thread, except `reset`, which wants the card to itself,
/// and `execute`, which wants its cores: the runtime runs one program at a time.
class Device {
 public:
  virtual ~Device() = default;

  /// Which implementation this is: `null`, `memory`.
  virtual std::string_view name() const = 0;
  virtual const Machine& machine() const = 0;

  /// The DMA door: a range of device memory, reachable from the host while the window lives.
  /// kOutOfRange when the range does not lie in the address space.
  virtual Result<HostWindow> open(DeviceRange range) = 0;

  /// Says that nobody needs the content of this range any more. It then reads as zero or as what it was.
  virtual void discard(DeviceRange range) = 0;

  /// A pointer that stands for an address and can never be dereferenced (hbm.h).
  virtual const void* token(DeviceAddress address) const = 0;
  virtual std::optional<DeviceAddress> address_of(const void* token) const = 0;

  /// The scratchpad of one core; kOutOfRange when there is no such core.
  virtual Result<std::span<std::byte>> lx(int core) = 0;

  /// Runs a program to its end on the calling thread and those it takes to help. Scratchpads keep what it
  /// leaves there. A bad program faults; the card stays usable.
  virtual Result<exec::RunCounts> execute(const ExecuteRequest& request) = 0;

  /// Scratchpads back to poison; memory stays. What a fault leaves in them is nobody's data.
  virtual void clear_lx() = 0;

  /// Back to power-on: memory reads as zero, scratchpads are poisoned (lx.h). No window may be open.
  virtual Status reset() = 0;
};

/// The emulated card: device memory, scratchpads, and cores that compute what programs say.
Result<std::unique_ptr<Device>> make_memory_device(const Machine& machine, Fence fence = Fence::kOpen);

/// A card that answers everything and keeps nothing. A window opens on fresh zeroed memory and what is
/// written there is gone when it shuts; scratchpads are real, and programs end at once, whatever they say.
/// The floor for overheads, and a skeleton to start from.
Result<std::unique_ptr<Device>> make_null_device(const Machine& machine);

}  // namespace spyre
