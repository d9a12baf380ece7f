#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "spyre/base/result.h"
#include "spyre/cost/rates.h"

namespace spyre {

class Stream;
using StreamRef = std::shared_ptr<Stream>;

/// A point in one stream's work: reached once, then for ever. What `Event` hands to streams; users see Event.
class EventMark {
 public:
  /// `device_time`: the simulated moment at which the stream is there; none where the clock does not run.
  explicit EventMark(std::optional<Nanos> device_time) : device_time_(device_time) {}

  /// The stream reached the mark, in this health. Wakes everyone who waits.
  void reach(Status health);
  bool reached() const;
  /// Blocks until reached; then the health of the stream at that point.
  Status wait() const;
  std::optional<Nanos> device_time() const { return device_time_; }
  /// The thread has seen that it was reached.
  void seen() const;

 private:
  mutable std::mutex mutex_;  // a leaf
  mutable std::condition_variable changed_;
  bool reached_ = false;
  Status health_;
  const std::optional<Nanos> device_time_;
};

/// A marker that can be put into a stream's work, asked about and waited for.
///
/// An event speaks of its latest `record`; recording again moves it. One never recorded counts as reached:
/// queries answer yes and waits return at once, as elsewhere in PyTorch. Waits that began before a new record
/// keep waiting for the old one. Any thread may call any member.
///
/// Times are simulated (device_clock.h): they measure the emulated card. How long the emulator takes is a matter of the
/// host's own clocks.
class Event {
 public:
  /// Puts the event behind all work given to the stream so far.
  Status record(const StreamRef& stream);

  /// True when all work before the record is done. A failure of that work is the error.
  Result<bool> query() const;
  /// The same, unseen: it does not change the time of this thread (device_clock.h).
  Result<bool> reached() const;
  /// Blocks until then.
  Status synchronize() const;
  /// Makes later work of `stream` wait for it, without blocking the caller. The streams may be of different
  /// cards. When the work before the record failed, `stream` fails too: what follows would use its results.
  Status block(const StreamRef& stream) const;

  /// Milliseconds of simulated time from this event to `end`. kInvalidArgument unless both are recorded and reached.
  Result<double> elapsed_ms(const Event& end) const;

  bool recorded() const { return mark() != nullptr; }

 private:
  std::shared_ptr<EventMark> mark() const;

  mutable std::mutex mutex_;  // guards mark_; a leaf
  std::shared_ptr<EventMark> mark_;
};

}  // namespace spyre
