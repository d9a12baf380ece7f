#include "spyre/runtime/event.h"

#include "spyre/runtime/activity_log.h"
#include "spyre/runtime/metrics.h"
#include "spyre/runtime/stream.h"

namespace spyre {

void EventMark::reach(Status health) {
  {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    health_ = std::move(health);
  }
  changed_.notify_all();
}

bool EventMark::reached() const {
  const std::lock_guard lock(mutex_);
  return reached_;
}

Status EventMark::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reached_; });
  return health_;
}

void EventMark::seen() const {
  if (device_time_) {
    thread_saw(*device_time_);
  }
}

std::shared_ptr<EventMark> Event::mark() const {
  const std::lock_guard lock(mutex_);
  return mark_;
}

Status Event::record(const StreamRef& stream) {
  const CallScope call("spyreEventRecord");
  auto fresh = std::make_shared<EventMark>(stream->clock().runs() ? std::optional(stream->device_time())
                                                                  : std::nullopt);
  SPYRE_TRY(stream->mark(fresh));
  count(Metric::kEventsRecorded);
  const std::lock_guard lock(mutex_);
  mark_ = std::move(fresh);
  return {};
}

namespace {

Result<bool> reached_well(const std::shared_ptr<EventMark>& mark) {
  if (mark == nullptr) {
    return true;
  }
  if (!mark->reached()) {
    return false;
  }
  SPYRE_TRY(mark->wait());
  return true;
}

}  // namespace

Result<bool> Event::reached() const {
  return reached_well(mark());
}

Result<bool> Event::query() const {
  const auto current = mark();
  SPYRE_ASSIGN_OR_RETURN(const bool done, reached_well(current));
  if (done && current != nullptr) {
    current->seen();
  }
  return done;
}

Status Event::synchronize() const {
  const auto current = mark();
  if (current == nullptr) {
    return {};
  }
  const CallScope call("spyreEventSynchronize");
  SPYRE_TRY(current->wait());
  current->seen();
  return {};
}

Status Event::block(const StreamRef& stream) const {
  const auto current = mark();
  const CallScope call("spyreStreamWaitEvent");
  return current == nullptr ? Status() : stream->wait_for(current);
}

Result<double> Event::elapsed_ms(const Event& end) const {
  const auto first = mark();
  const auto last = end.mark();
  if (first == nullptr || last == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "elapsed time needs two recorded events")
        .note(first == nullptr ? "the first was never recorded" : "the second was never recorded");
  }
  if (!first->reached() || !last->reached()) {
    return Error(ErrorKind::kInvalidArgument, "elapsed time needs two events that have been reached")
        .try_instead("synchronize() on the second event first");
  }
  if (!first->device_time() || !last->device_time()) {
    return Error(ErrorKind::kInvalidArgument, "elapsed time needs the simulated clock, which does not run")
        .try_instead("the setting SPYRE_DEVICE_TIME=1");
  }
  return (*last->device_time() - *first->device_time()).us() / 1000;
}

}  // namespace spyre
