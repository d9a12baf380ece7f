#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/device/device.h"
#include "spyre/runtime/free_space.h"
#include "spyre/runtime/memory.h"
#include "spyre/runtime/memory_stats.h"
#include "spyre/runtime/status_page.h"

namespace spyre {

/// Size and alignment of every block: one stick.
inline constexpr Bytes kAllocationGranularity = Bytes(128);

/// How the card is presented (setting FLEX_DEVICE).
///
/// |           | windows                           | where a tensor goes                                  |
/// |-----------|-----------------------------------|------------------------------------------------------|
/// | PF, MOCK  | the card's segments, whole        | best fit: the smallest free block that is large      |
/// |           |                                   | enough, lowest address among equals                  |
/// | VF        | three quarters of each segment    | lowest offset that fits, in the window with the most |
/// |           | (12 of 16 GiB): a shared card     | free bytes                                           |
///
/// In all of them programs have the machine's program segment to themselves and no block crosses a segment,
/// so one tensor is at most one window.
enum class CardMode { kMock, kPf, kVf };

struct AllocatorOptions {
  CardMode mode = CardMode::kMock;
  /// Tensor windows beyond this many bytes are left out, the highest first (setting SPYRE_CARD_MEMORY_GIB).
  std::optional<Bytes> tensor_memory;
};

/// Bytes for tensors on a card of these options: the program segment and what a setting leaves out are not among them.
Bytes tensor_memory(const Machine& machine, const AllocatorOptions& options);

/// What is known about a block besides its size.
struct AllocationInfo {
  MemoryKind kind = MemoryKind::kTensor;
  std::string description;       ///< `float16[1024, 256]`; see Memory::describe
  std::shared_ptr<void> frames;  ///< the caller's stack, for snapshot and history; opaque here
};

/// One block, live or free, in address order within its segment.
struct BlockSnapshot {
  DeviceRange range;
  bool live = false;
  Bytes requested;
  std::string description;
  std::shared_ptr<void> frames;
};

/// One window of device memory that holds at least one live block.
struct SegmentSnapshot {
  DeviceRange range;
  MemoryKind kind = MemoryKind::kTensor;
  Bytes allocated, requested;
  std::vector<BlockSnapshot> blocks;
};

/// One thing that happened, for PyTorch's memory viewer.
struct HistoryEntry {
  enum class Action { kAlloc, kFree, kOutOfMemory } action;
  DeviceAddress address;  ///< meaningless for kOutOfMemory
  Bytes size;             ///< rounded
  int64_t time_us = 0;    ///< since the Unix epoch
  std::shared_ptr<void> frames;
};

/// Called when a request does not fit, to let go of what nobody needs (collect garbage, drop caches); the
/// request is then tried once more. Runs on the requesting thread with no lock of ours held: it may free and
/// even allocate (what it allocates itself does not call it again). It must not throw. `needed` is the
/// rounded request.
using MemoryPressureCallback = std::function<void(Bytes needed)>;

/// Hands out the memory of one card.
///
/// Every block is a whole number of sticks at a stick boundary. Large freed blocks give their host pages back
/// at once. All members may be called from any thread; the lock inside is a leaf (nothing is called while it
/// is held), so callers may hold any lock of their own.
///
/// Owned by shared_ptr: each Memory keeps its allocator, and through it the device, alive.
class Allocator : public std::enable_shared_from_this<Allocator> {
 public:
  /// `status` is told how much is in use.
  Allocator(int device_index, std::shared_ptr<Device> device, AllocatorOptions options,
            CardStatus& status = unpublished_status());

  /// A block of `size` bytes, or a null reference for zero bytes. kInvalidArgument for a negative size;
  /// kOutOfMemory, with all figures, when there is no room.
  Result<MemoryRef> allocate(Bytes size, AllocationInfo info = {});

  /// The live block a token points into, at its start or inside. kUseAfterFree when the token is of this card
  /// but no live block holds it; kNotFound when it is not of this card at all.
  Result<MemoryRef> find(const void* token) const;

  void set_pressure_callback(MemoryPressureCallback callback);

  // Reports are empty in a bad fork (fork.h).
  MemoryStats stats() const;
  MemoryInfo info() const;
  void reset_peak_stats();
  void reset_accumulated_stats();

  std::vector<SegmentSnapshot> snapshot() const;
  /// Starts to keep the last `max_entries` events; 0 stops and forgets.
  void record_history(size_t max_entries);
  std::vector<HistoryEntry> history() const;

  int device_index() const { return device_index_; }
  Device& device() const { return *device_; }

 private:
  friend class Memory;

  struct Live {
    Bytes size, requested;
    MemoryKind kind;
    AllocationInfo info;
    std::weak_ptr<Memory> memory;
  };

  void give_back(const Memory& memory);
  void describe(const Memory& memory, std::string text);
  std::string description(const Memory& memory) const;

  MemoryRef try_allocate(Bytes size, Bytes rounded, const AllocationInfo& info);
  MemoryInfo info_locked() const;
  void update_levels_locked();
  void remember_locked(HistoryEntry::Action action, DeviceAddress address, Bytes size,
                       const std::shared_ptr<void>& frames);
  Error out_of_memory(Bytes size, Bytes rounded, const AllocationInfo& info);
  FreeSpace& space(MemoryKind kind) { return kind == MemoryKind::kTensor ? tensors_ : programs_; }

  const int device_index_;
  const std::shared_ptr<Device> device_;
  const CardMode mode_;
  CardStatus& status_;

  mutable std::mutex mutex_;  // guards everything below; a leaf
  FreeSpace tensors_, programs_;
  std::map<DeviceAddress, Live> live_;
  MemoryStats stats_;
  std::shared_ptr<const MemoryPressureCallback> pressure_;
  size_t history_limit_ = 0;
  std::deque<HistoryEntry> history_;
};

}  // namespace spyre
