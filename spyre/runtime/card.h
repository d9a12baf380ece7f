#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "spyre/device/execute.h"
#include "spyre/runtime/allocator.h"
#include "spyre/runtime/program_cache.h"
#include "spyre/runtime/status_page.h"
#include "spyre/runtime/stream_pool.h"

namespace spyre {

struct CardOptions {
  AllocatorOptions memory;
  int host_compute_streams = 4;
  ExecuteOptions execution;
  /// The card is shared: whoever has it between two bundles wipes the scratchpads (FLEX_DEVICE=VF).
  bool wipes_lx = false;
  /// Nobody has it after a bundle that is marked non-terminal (SPYRE_NON_TERMINAL).
  bool keeps_non_terminal = true;
  /// Work is timed (device_clock.h).
  bool device_time = true;
};

class Card;

/// A launch's hold on the cores of its card, from its first program on. After each program they are free for
/// other launches, unless the program was non-terminal: then they stay with this launch until its next one
/// has run, and scratchpads keep what it left. Ends, at the latest, with the object, on the same thread.
///
///     launch a    [a0 non-terminal|a1     ]           [a2]
///     launch b                             [b0      ]
///     LX               kept        free: on a shared card wiped
class CoreTurn {
 public:
  explicit CoreTurn(Card& card) : card_(card) {}
  ~CoreTurn() { finish(); }
  CoreTurn(const CoreTurn&) = delete;
  CoreTurn& operator=(const CoreTurn&) = delete;

 private:
  friend class Card;
  void finish();  // gives the cores back, if they are held

  Card& card_;
  std::unique_lock<std::mutex> cores_;
  std::optional<exec::Checker> checker_;  // of the whole launch, where launches are checked
};

/// What is known about a program beside itself: where it stands in its launch.
struct ProgramEnd {
  bool non_terminal = false;
  bool last = true;
  std::string_view kernel = {};  ///< whose program it is, for whoever looks on
};

/// One card in use: a device, the allocator of its memory, its streams. Made by Runtime, which keeps it until
/// the process ends, so a `Card*` never dangles; after shutdown its streams refuse work.
class Card {
 public:
  /// Cards of one machine may share their cache of programs; without one the card has its own.
  Card(int index, std::shared_ptr<Device> device, CardOptions options,
       std::shared_ptr<ProgramCache> programs = nullptr);
  ~Card();

  int index() const { return index_; }  ///< logical: position among the visible cards
  const Machine& machine() const { return device_->machine(); }
  Device& device() const { return *device_; }
  Allocator& allocator() const { return *allocator_; }
  StreamPool& streams() { return streams_; }
  ProgramCache& programs() const { return *programs_; }
  DeviceClock& clock() const { return streams_.clock(); }

  /// Runs a program on the cores, now, on the calling thread; waits while another one has them. For work in
  /// its place on a stream (launch.h). The bundle's own pool is one block for all programs of the card, as
  /// large as the largest asked for: what is in it ends with the run. It lies in the program segment.
  Result<exec::RunCounts> run(CoreTurn& turn, const LoadedProgram& program, std::vector<int64_t> parameters,
                              std::vector<MappedBytes> memory, ProgramEnd end = {});

  /// How programs run from now on.
  void set_execution(ExecuteOptions options);

  /// After a fault: forgets the errors of all streams, once they are idle, and poisons the scratchpads.
  /// Memory stays as it is.
  Status reset();

  /// Short for allocator().allocate. kShutdown after the runtime was shut down.
  Result<MemoryRef> allocate(Bytes size, AllocationInfo info = {});

  /// Waits for all work given to all streams of the card. The first error in stream-id order.
  Status synchronize();

  /// Drains and closes the streams; no allocation succeeds afterwards. Idempotent.
  void close();

 private:
  friend class CoreTurn;

  const int index_;
  const std::shared_ptr<Device> device_;
  CardStatus& status_;
  const std::shared_ptr<Allocator> allocator_;
  const std::shared_ptr<ProgramCache> programs_;
  StreamPool streams_;
  std::atomic<bool> closed_ = false;
  const bool wipes_lx_, keeps_non_terminal_;

  std::mutex cores_;  // held by a CoreTurn while a program runs; after a plan's lock, before the allocator's
  MemoryRef pool_;
  ExecuteOptions execution_;
};

}  // namespace spyre
