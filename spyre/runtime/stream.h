#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "spyre/base/result.h"
#include "spyre/runtime/device_clock.h"
#include "spyre/runtime/event.h"
#include "spyre/runtime/status_page.h"

namespace spyre {

/// One piece of work. Runs on the stream's thread, or on the caller's (run_now_or_enqueue), with no lock of
/// ours held. An exception that leaves it counts as the failure kDeviceFault.
using Work = std::function<Status()>;

/// Work of one card that runs in the order it was given, one piece at a time.
///
/// The thread behind a stream exists from the first `enqueue` on; a stream that only ever runs work for
/// callers who wait has none.
///
///     caller            enqueue(a)  enqueue(b)  synchronize...........returns
///     stream's thread         [   a   ][      b      ]
///
/// *Failure.* Work nobody waits for has nobody to tell: when it fails the stream is *poisoned*. Work still
/// queued is dropped (events in it are reached, with the error), and `enqueue`, `synchronize`, `query` answer
/// that first error until `reset`. Work run by `run_now_or_enqueue` tells its caller and poisons the stream
/// only when the card itself is at fault (kDeviceFault).
///
/// All members may be called from any thread. From inside the stream's own work, those that wait answer
/// kInvalidArgument instead of waiting for themselves. In a bad fork (fork.h) everything answers kBadFork.
/// Lock order: the lock inside is a leaf.
///
/// *Simulated time* is beside all that (device_clock.h): who gives work says with `spend` how long the card takes for
/// it, events carry it from stream to stream, and a thread that waits has seen what it waited for.
class Stream {
 public:
  /// The clock is that of the card; a stream by itself has its own. `status` is told how much work there is.
  Stream(int device_index, int id, int priority,
         std::shared_ptr<DeviceClock> clock = std::make_shared<DeviceClock>(),
         CardStatus& status = unpublished_status());
  ~Stream();  ///< closes it
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int device_index() const { return device_index_; }
  int id() const { return id_; }
  int priority() const { return priority_; }  ///< 0 low, -1 high: a hint; nothing is scheduled by it yet

  /// Puts work at the end and returns. Fails when the stream is poisoned or closed.
  Status enqueue(Work work);

  /// Runs work after all that came before it and returns when it is done, with its own result. When the
  /// stream is idle it runs right here on the calling thread, which saves two thread switches; other work
  /// given meanwhile waits its turn.
  Status run_now_or_enqueue(Work work);

  /// Waits for all work given before this call. The stream's error if it is poisoned.
  Status synchronize();

  /// True when nothing is queued or running. The stream's error if it is poisoned.
  Result<bool> query() const;

  /// Later work starts only when the mark is reached (Event::block).
  Status wait_for(std::shared_ptr<EventMark> event);
  /// Reaches the mark when all work given so far is done (Event::record).
  Status mark(std::shared_ptr<EventMark> event);

  /// Recovers a poisoned stream: waits until it is idle, then forgets the error.
  Status reset();

  /// Says how long the card takes for the work that was given last.
  TimeSpan spend(Nanos time, std::optional<Engine> engine = std::nullopt) {
    return clock_->spend(id_, time, engine);
  }
  DeviceClock& clock() const { return *clock_; }
  /// When all work given so far is done, simulated.
  Nanos device_time() const { return clock_->now(id_); }

  /// Drops the queued work, as a failure would, with kShutdown; what runs at this moment goes on. For the end of a
  /// process, followed by `close`.
  void drop_queued();

  /// Finishes the queued work, ends the thread, refuses new work with kShutdown. Idempotent.
  void close();

 private:
  struct Item {
    Work work;
    std::shared_ptr<EventMark> mark;  // reached even when the stream is poisoned
  };

  Status push(Item item);
  Status push_locked(std::unique_lock<std::mutex>& lock, Item item);
  Status accepts_locked() const;
  Status health_locked() const;
  bool idle_locked() const { return queue_.empty() && !busy_; }
  bool inside_own_work_locked() const { return busy_ && runner_ == std::this_thread::get_id(); }
  Error waits_for_itself() const;
  void wait_for_ticket_locked(std::unique_lock<std::mutex>& lock, int64_t ticket);
  void begin_locked();
  void finish_locked(const Status& outcome);
  void work_loop();

  const int device_index_, id_, priority_;
  const std::shared_ptr<DeviceClock> clock_;
  CardStatus::Stream& status_;

  mutable std::mutex mutex_;          // guards everything below; a leaf
  std::condition_variable work_;      // for the thread: queue_ grew, busy_ fell, or closing_
  std::condition_variable progress_;  // for waiters: done_ grew
  std::deque<Item> queue_;
  bool busy_ = false;       // a piece of work runs, on whichever thread
  std::thread::id runner_;  // where, while busy_
  bool closing_ = false;
  int64_t given_ = 0, done_ = 0;  // pieces of work so far; equal when idle
  std::optional<Error> error_;    // the poison
  std::unique_ptr<std::thread> thread_;
};

}  // namespace spyre
