#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/runtime/device_clock.h"

/// What other processes see of the cards of this one, as `spyre-top` shows it.
///
///     /dev/shm/spyre-1000/4711      a page of memory that the runtime of process 4711 writes and others read
///
/// Private to the user. It goes with the process: removed when the runtime shuts down; after a crash nobody holds its
/// lock any more, and whoever looks next removes it. Where it cannot be made, or SPYRE_STATUS=0, nothing is published
/// and nothing else changes (docs/adr/0080-status-page.md).
namespace spyre {

/// One card, as it is now. Writers store single numbers, so that nobody waits; a reader may see one of them a moment
/// older than another.
struct CardStatus {
  static constexpr size_t kNameWords = 12;

  std::atomic<int64_t> in_use = 0;                          ///< 0: no card here
  std::atomic<int64_t> total = 0, allocated = 0, peak = 0;  ///< bytes for tensors
  std::atomic<int64_t> launches = 0;                        ///< programs started
  std::atomic<int64_t> busy_ns = 0;        ///< wall time of those that ended: the emulator's, not the card's
  std::atomic<int64_t> running_since = 0;  ///< of the system's clock, ns; 0: nothing runs
  std::array<std::atomic<uint64_t>, kNameWords> kernel = {};  ///< name of what runs, or ran last
  struct Stream {
    std::atomic<int64_t> given = 0, done = 0;  ///< pieces of work
  };
  std::array<Stream, DeviceClock::kStreams> streams = {};

  /// A program begins to run, and ends. One at a time.
  void begin(std::string_view name);
  void end();
};

/// Where a card may write when it is not published.
CardStatus& unpublished_status();

/// A place for card `index`; `unpublished_status` if there is none. Stays valid until the process ends.
CardStatus& claim_status(int index);
void release_status(CardStatus& status);

/// Makes the page of this process, if the setting allows it. Idempotent.
void publish_status();
/// Removes it. Writers may go on to write.
void withdraw_status();

/// What one process says of one card, read at one moment.
struct SeenCard {
  int index = 0;
  Bytes total, allocated, peak;
  int64_t launches = 0, busy_ns = 0;
  int64_t running_ns = 0;  ///< how long the kernel runs by now; 0: none does
  std::string kernel;      ///< that runs, or ran last
  int streams = 0;         ///< that were ever given work
  int64_t waiting = 0;     ///< pieces of work, those that run included
};
struct SeenProcess {
  int64_t pid = 0;
  std::string command;
  int64_t age_ns = 0;  ///< since its runtime started
  std::vector<SeenCard> cards;
};

/// All processes of this user that have cards now, by pid. What a dead one left is removed.
std::vector<SeenProcess> seen_processes();

}  // namespace spyre
