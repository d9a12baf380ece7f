#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "spyre/runtime/card.h"
#include "spyre/runtime/event.h"
#include "spyre/runtime/memory.h"
#include "spyre/runtime/metrics.h"
#include "spyre/runtime/stream.h"
#include "spyre/runtime/transfer.h"

namespace spyre {

/// The cards of this process and whether they may be used.
///
///     not started --start()--> started --shutdown()--> shut down (for good)
///
/// The object exists from the first `instance()` on and costs nothing; cards come into being one by one, when
/// first asked for. `device_count` never starts anything.
///
/// *Exit.* The instance is never destroyed, so no order of static destructors matters to it. Streams, however, have
/// threads, and what those run uses the rest of the process: `shutdown` must come while it is still whole, before
/// `exit` destroys anything. Python does it by `atexit`, and drops what is queued.
///
/// *Locks.* runtime -> stream pool -> stream, event mark; allocator, device, program cache and metrics are
/// leaves. None is held while work, transfer bodies or callbacks run. Work that launches holds, in this order,
/// its plan's lock and its card's cores.
class Runtime {
 public:
  static constexpr int kMaxCards = 8;

  /// The one of this process. Never destroyed.
  static Runtime& instance();

  /// For tests: a runtime of its own, on any machine. Shuts down when destroyed.
  explicit Runtime(const Machine& machine, Fence fence = Fence::kOpen);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// How many cards are visible (visible_devices.h): read from the environment until started, fixed after.
  Result<int> device_count() const;

  /// Bytes of one card that tensors can use, as MemoryInfo::total. Starts nothing either.
  Result<Bytes> tensor_memory() const;

  bool started() const { return state_.load(std::memory_order_acquire) == State::kStarted; }

  /// Reads the settings and fixes them. Idempotent and thread safe; a failure (malformed setting) can be
  /// repaired and tried again. kBadFork in a bad fork, kShutdown after shutdown.
  Status start();

  /// The card behind a logical index; starts the runtime and makes the card if need be. kOutOfRange:
  /// `Device index out of bounds. logical_device_id=.., number of visible devices=..`
  Result<Card*> card(int index);

  /// The live block a token points into, whichever card it is of (Allocator::find).
  Result<MemoryRef> find(const void* token) const;

  /// True when this process may never use a device: forked after start (fork.h), or a compile worker of
  /// Inductor (IS_INDUCTOR_SPAWNED_SUBPROCESS=1).
  bool in_bad_fork() const;

  /// Waits for all work on all cards that exist. The first error in card order.
  Status synchronize();

  /// What becomes of work that is queued when the runtime is shut down. What runs already is finished in both cases.
  enum class Queued { kFinish, kDrop };

  /// Ends all threads, refuses everything afterwards with kShutdown. Memory still referenced stays valid to hold and
  /// to free. Idempotent; nothing to do if never started or in a bad fork. Not to be called from work on a stream.
  void shutdown(Queued queued = Queued::kFinish);

 private:
  enum class State { kNotStarted, kStarted, kShutDown };

  Status check_usable() const;
  Result<std::unique_ptr<Card>> make_card(int index) const;
  std::vector<Card*> existing_cards() const;

  const Machine& machine_;
  const Fence fence_;
  std::atomic<State> state_ = State::kNotStarted;
  std::array<std::atomic<Card*>, kMaxCards> cards_ = {};  // set once, under the lock; read without

  mutable std::mutex mutex_;  // guards start, shutdown and the making of cards; taken before all others
  std::vector<int> visible_;  // fixed by start: logical index -> card number
  CardOptions options_;       // fixed by start
  std::vector<std::unique_ptr<Card>> owned_;
  const std::shared_ptr<ProgramCache> programs_;  // one for all cards
};

}  // namespace spyre
