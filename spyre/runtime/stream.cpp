#include "spyre/runtime/stream.h"

#include <fmt/format.h>
#include <pthread.h>

#include <exception>
#include <utility>

#include "spyre/runtime/activity_log.h"
#include "spyre/runtime/fork.h"
#include "spyre/runtime/metrics.h"

namespace spyre {
namespace {

Status run_guarded(const Work& work) {
  try {
    return work();
  } catch (const std::exception& thrown) {
    return Error(ErrorKind::kDeviceFault, fmt::format("work on a stream threw: {}", thrown.what()));
  } catch (...) {
    return Error(ErrorKind::kDeviceFault, "work on a stream threw something that is not a std::exception");
  }
}

}  // namespace

Stream::Stream(int device_index, int id, int priority, std::shared_ptr<DeviceClock> clock, CardStatus& status)
    : device_index_(device_index),
      id_(id),
      priority_(priority),
      clock_(std::move(clock)),
      status_(status.streams[static_cast<size_t>(id) % status.streams.size()]) {}

Stream::~Stream() {
  if (forked_after_start()) {
    (void)thread_.release();  // the thread stayed in the parent; joining it would wait for ever
    return;
  }
  close();
}

Status Stream::enqueue(Work work) {
  SPYRE_TRY(check_process());
  count(Metric::kWorkEnqueued);
  return push({std::move(work), nullptr});
}

Status Stream::run_now_or_enqueue(Work work) {
  SPYRE_TRY(check_process());
  std::unique_lock lock(mutex_);
  SPYRE_TRY(accepts_locked());
  if (inside_own_work_locked()) {
    return waits_for_itself();
  }
  if (idle_locked()) {
    ++given_;
    status_.given.store(given_, std::memory_order_relaxed);
    begin_locked();
    lock.unlock();
    Status outcome = run_guarded(work);
    work = nullptr;  // lets go of what it captured before anyone can see it done
    count(Metric::kWorkInline);
    lock.lock();
    const bool poisons = !outcome.ok() && outcome.error().kind == ErrorKind::kDeviceFault;
    finish_locked(poisons ? outcome : Status());
    return outcome;
  }
  std::optional<Status> outcome;
  count(Metric::kWorkEnqueued);
  SPYRE_TRY(push_locked(lock, {[&outcome, body = std::move(work)]() -> Status {
                                 outcome = run_guarded(body);
                                 const bool poisons =
                                     !outcome->ok() && outcome->error().kind == ErrorKind::kDeviceFault;
                                 return poisons ? *outcome : Status();
                               },
                               nullptr}));
  wait_for_ticket_locked(lock, given_);
  return outcome ? *outcome : health_locked();  // without outcome it was dropped: the stream is poisoned
}

Status Stream::synchronize() {
  SPYRE_TRY(check_process());
  const CallScope call("spyreStreamSynchronize");
  count(Metric::kStreamSyncs);
  const Nanos end = device_time();
  std::unique_lock lock(mutex_);
  if (inside_own_work_locked()) {
    return waits_for_itself();
  }
  wait_for_ticket_locked(lock, given_);
  thread_saw(end);
  return health_locked();
}

Result<bool> Stream::query() const {
  SPYRE_TRY(check_process());
  const std::lock_guard lock(mutex_);
  SPYRE_TRY(health_locked());
  return idle_locked();
}

Status Stream::wait_for(std::shared_ptr<EventMark> event) {
  SPYRE_TRY(check_process());
  if (event->device_time()) {
    clock_->wait(id_, *event->device_time());
  }
  if (event->reached() && event->wait().ok()) {
    return {};
  }
  return push({[event = std::move(event)] { return event->wait(); }, nullptr});
}

Status Stream::mark(std::shared_ptr<EventMark> event) {
  SPYRE_TRY(check_process());
  std::unique_lock lock(mutex_);
  if (idle_locked()) {
    if (closing_) {
      return accepts_locked();
    }
    Status health = health_locked();
    lock.unlock();
    event->reach(std::move(health));
    return {};
  }
  return push_locked(lock, {nullptr, std::move(event)});
}

Status Stream::reset() {
  SPYRE_TRY(check_process());
  std::unique_lock lock(mutex_);
  if (inside_own_work_locked()) {
    return waits_for_itself();
  }
  wait_for_ticket_locked(lock, given_);
  error_.reset();
  return {};
}

void Stream::drop_queued() {
  const std::lock_guard lock(mutex_);
  if (!error_) {
    error_ = Error(ErrorKind::kShutdown,
                   fmt::format("work queued on stream {} of device {} was dropped: the process ends", id_,
                               device_index_));
  }
}

void Stream::close() {
  std::unique_ptr<std::thread> thread;
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    if (thread_ == nullptr) {
      wait_for_ticket_locked(lock, given_);  // work that runs inline on another thread
    }
    thread = std::move(thread_);
  }
  work_.notify_all();
  if (thread != nullptr) {
    thread->join();
  }
}

Status Stream::push(Item item) {
  std::unique_lock lock(mutex_);
  return push_locked(lock, std::move(item));
}

Status Stream::push_locked(std::unique_lock<std::mutex>& lock, Item item) {
  SPYRE_CHECK(lock.owns_lock(), "the queue is changed under its lock");
  if (item.mark == nullptr || closing_) {
    SPYRE_TRY(accepts_locked());
  }
  queue_.push_back(std::move(item));
  ++given_;
  status_.given.store(given_, std::memory_order_relaxed);
  if (thread_ == nullptr) {
    thread_ = std::make_unique<std::thread>([this] { work_loop(); });
  } else if (!busy_) {
    work_.notify_one();
  }
  return {};
}

Status Stream::accepts_locked() const {
  if (closing_) {
    return Error(
        ErrorKind::kShutdown,
        fmt::format("stream {} of device {} is closed: the runtime was shut down", id_, device_index_));
  }
  return health_locked();
}

Status Stream::health_locked() const {
  return error_ ? Status(*error_) : Status();
}

Error Stream::waits_for_itself() const {
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("work on stream {} of device {} waits for its own stream", id_, device_index_))
      .try_instead("wait from outside the work, or give the inner work to another stream");
}

void Stream::wait_for_ticket_locked(std::unique_lock<std::mutex>& lock, int64_t ticket) {
  progress_.wait(lock, [&] { return done_ >= ticket; });
}

void Stream::begin_locked() {
  busy_ = true;
  runner_ = std::this_thread::get_id();
}

void Stream::finish_locked(const Status& outcome) {
  busy_ = false;
  ++done_;
  status_.done.store(done_, std::memory_order_relaxed);
  if (!outcome.ok()) {
    count(Metric::kWorkFailed);
    if (!error_) {
      error_ = outcome.error();
    }
  }
  progress_.notify_all();
  if (!queue_.empty() || closing_) {
    work_.notify_one();
  }
}

void Stream::work_loop() {
  pthread_setname_np(pthread_self(), fmt::format("spyre{}:{}", device_index_, id_).c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return !busy_ && (!queue_.empty() || closing_); });
    if (queue_.empty()) {
      return;  // closing, and drained
    }
    Item item = std::move(queue_.front());
    queue_.pop_front();
    begin_locked();
    const Status health = health_locked();
    lock.unlock();
    Status outcome;
    if (item.mark != nullptr) {
      item.mark->reach(health);
    } else if (health.ok()) {
      outcome = run_guarded(item.work);
    }
    item = Item();  // lets go of what it captured before anyone can see it done
    lock.lock();
    finish_locked(outcome);
  }
}

}  // namespace spyre
