#include "spyre/runtime/device_clock.h"

#include <algorithm>

#include "spyre/base/result.h"

namespace spyre {
namespace {

thread_local Nanos time_of_thread;

size_t position_of(int stream) {
  SPYRE_CHECK(stream >= 0 && stream < DeviceClock::kStreams, "streams have the ids that their pool gives");
  return static_cast<size_t>(stream);
}

}  // namespace

TimeSpan DeviceClock::spend(int stream, Nanos time, std::optional<Engine> engine) {
  if (!runs_) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  Nanos& own = streams_[position_of(stream)];
  TimeSpan span = {.begin = std::max(own, thread_time()), .end = {}};
  if (engine) {
    span.begin = std::max(span.begin, engines_[static_cast<size_t>(*engine)]);
  }
  span.end = own = span.begin + time;
  if (engine) {
    engines_[static_cast<size_t>(*engine)] = span.end;
  }
  return span;
}

void DeviceClock::wait(int stream, Nanos moment) {
  if (runs_) {
    const std::lock_guard lock(mutex_);
    Nanos& own = streams_[position_of(stream)];
    own = std::max(own, moment);
  }
}

Nanos DeviceClock::now(int stream) const {
  if (!runs_) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  return std::max(streams_[position_of(stream)], thread_time());
}

Nanos thread_time() {
  return time_of_thread;
}

void thread_saw(Nanos moment) {
  time_of_thread = std::max(time_of_thread, moment);
}

void thread_spent(Nanos time) {
  time_of_thread = time_of_thread + time;
}

}  // namespace spyre
