#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "spyre/base/result.h"

namespace spyre {

class Stream;
using StreamRef = std::shared_ptr<Stream>;

/// A point in one stream's work: reached once, then for ever. What `Event` hands to streams; users see Event.
class EventMark {
 public:
  using Clock = std::chrono::steady_clock;

  /// The stream reached the mark, in this health. Wakes everyone who waits.
  void reach(Status health);
  bool reached() const;
  /// Blocks until reached; then the health of the stream at that point.
  Status wait() const;
  /// When it was reached; nothing before that.
  std::optional<Clock::time_point> time() const;

 private:
  mutable std::mutex mutex_;  // a leaf
  mutable std::condition_variable changed_;
  std::optional<Clock::time_point> time_;
  Status health_;
};

/// A marker that can be put into a stream's work, asked about and waited for.
///
/// An event speaks of its latest `record`; recording again moves it. One never recorded counts as reached:
/// queries answer yes and waits return at once, as elsewhere in PyTorch. Waits that began before a new record
/// keep waiting for the old one. Any thread may call any member.
///
/// Times are wall-clock times of the host at the moment the stream passed the mark: they measure the
/// emulator, not the emulated card.
class Event {
 public:
  /// Puts the event behind all work given to the stream so far.
  Status record(const StreamRef& stream);

  /// True when all work before the record is done. A failure of that work is the error.
  Result<bool> query() const;
  /// Blocks until then.
  Status synchronize() const;
  /// Makes later work of `stream` wait for it, without blocking the caller. The streams may be of different
  /// cards. When the work before the record failed, `stream` fails too: what follows would use its results.
  Status block(const StreamRef& stream) const;

  /// Milliseconds from this event to `end`. kInvalidArgument unless both are recorded and reached.
  Result<double> elapsed_ms(const Event& end) const;

  bool recorded() const { return mark() != nullptr; }

 private:
  std::shared_ptr<EventMark> mark() const;

  mutable std::mutex mutex_;  // guards mark_; a leaf
  std::shared_ptr<EventMark> mark_;
};

}  // namespace spyre
