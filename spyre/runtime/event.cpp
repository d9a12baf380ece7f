#include "spyre/runtime/event.h"

#include "spyre/runtime/metrics.h"
#include "spyre/runtime/stream.h"

namespace spyre {

void EventMark::reach(Status health) {
  {
    const std::lock_guard lock(mutex_);
    time_ = Clock::now();
    health_ = std::move(health);
  }
  changed_.notify_all();
}

bool EventMark::reached() const {
  const std::lock_guard lock(mutex_);
  return time_.has_value();
}

Status EventMark::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return time_.has_value(); });
  return health_;
}

std::optional<EventMark::Clock::time_point> EventMark::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

std::shared_ptr<EventMark> Event::mark() const {
  const std::lock_guard lock(mutex_);
  return mark_;
}

Status Event::record(const StreamRef& stream) {
  auto fresh = std::make_shared<EventMark>();
  SPYRE_TRY(stream->mark(fresh));
  count(Metric::kEventsRecorded);
  const std::lock_guard lock(mutex_);
  mark_ = std::move(fresh);
  return {};
}

Result<bool> Event::query() const {
  const auto current = mark();
  if (current == nullptr) {
    return true;
  }
  if (!current->reached()) {
    return false;
  }
  SPYRE_TRY(current->wait());
  return true;
}

Status Event::synchronize() const {
  const auto current = mark();
  return current == nullptr ? Status() : current->wait();
}

Status Event::block(const StreamRef& stream) const {
  const auto current = mark();
  return current == nullptr ? Status() : stream->wait_for(current);
}

Result<double> Event::elapsed_ms(const Event& end) const {
  const auto first = mark();
  const auto last = end.mark();
  if (first == nullptr || last == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "elapsed time needs two recorded events")
        .note(first == nullptr ? "the first was never recorded" : "the second was never recorded");
  }
  const auto from = first->time();
  const auto to = last->time();
  if (!from || !to) {
    return Error(ErrorKind::kInvalidArgument, "elapsed time needs two events that have been reached")
        .try_instead("synchronize() on the second event first");
  }
  return std::chrono::duration<double, std::milli>(*to - *from).count();
}

}  // namespace spyre
