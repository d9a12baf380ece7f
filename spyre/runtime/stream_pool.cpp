#include "spyre/runtime/stream_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/runtime/fork.h"

namespace spyre {

static_assert(DeviceClock::kStreams >= StreamPool::kFirstHostCompute + StreamPool::kMaxHostCompute);

StreamPool::StreamPool(int device_index, int host_compute_streams, std::shared_ptr<DeviceClock> clock,
                       CardStatus& status)
    : device_index_(device_index),
      host_compute_streams_(std::min(host_compute_streams, kMaxHostCompute)),
      clock_(std::move(clock)),
      status_(status) {
  SPYRE_CHECK(host_compute_streams_ >= 1, "a card has a host-compute stream");
  streams_[0] = std::make_shared<Stream>(device_index, 0, 0, clock_, status_);
  for (int i = 0; i < host_compute_streams_; ++i) {
    const int id = kFirstHostCompute + i;
    streams_[static_cast<size_t>(id)] = std::make_shared<Stream>(device_index, id, -1, clock_, status_);
  }
}

StreamRef StreamPool::next(int priority) {
  const std::lock_guard lock(mutex_);
  int& turn = priority == 0 ? next_low_ : next_high_;
  const int id = (priority == 0 ? kFirstLow : kFirstHigh) + turn;
  turn = (turn + 1) % kPoolSize;
  StreamRef& stream = streams_[static_cast<size_t>(id)];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(device_index_, id, priority == 0 ? 0 : -1, clock_, status_);
    if (closed_) {
      stream->close();
    }
  }
  return stream;
}

StreamRef StreamPool::host_compute(int index) const {
  SPYRE_CHECK(index >= 0, "host-compute streams are counted from 0");
  return streams_[static_cast<size_t>(kFirstHostCompute + index % host_compute_streams_)];
}

Result<StreamRef> StreamPool::find(int id) const {
  SPYRE_TRY(check_process());
  if (id >= 0 && id < static_cast<int>(streams_.size())) {
    const std::lock_guard lock(mutex_);
    if (const StreamRef& stream = streams_[static_cast<size_t>(id)]) {
      return stream;
    }
  }
  return Error(ErrorKind::kNotFound, fmt::format("no stream with id {} on device {}", id, device_index_))
      .note(
          fmt::format("ids: 0 default, {} to {} low priority, {} to {} high priority, {} to {} host compute",
                      kFirstLow, kFirstHigh - 1, kFirstHigh, kFirstHostCompute - 1, kFirstHostCompute,
                      kFirstHostCompute + host_compute_streams_ - 1))
      .try_instead("torch.spyre.Stream(), which hands out the next stream of the pool");
}

std::vector<StreamRef> StreamPool::existing() const {
  const std::lock_guard lock(mutex_);
  std::vector<StreamRef> out;
  std::copy_if(streams_.begin(), streams_.end(), std::back_inserter(out),
               [](const StreamRef& stream) { return stream != nullptr; });
  return out;
}

Status StreamPool::synchronize() {
  SPYRE_TRY(check_process());
  Status first;
  for (const StreamRef& stream : existing()) {
    Status status = stream->synchronize();
    if (first.ok() && !status.ok()) {
      first = std::move(status);
    }
  }
  return first;
}

Status StreamPool::reset() {
  SPYRE_TRY(check_process());
  for (const StreamRef& stream : existing()) {
    SPYRE_TRY(stream->reset());
  }
  return {};
}

void StreamPool::drop_queued() {
  for (const StreamRef& stream : existing()) {
    stream->drop_queued();
  }
}

void StreamPool::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  for (const StreamRef& stream : existing()) {
    stream->close();
  }
}

}  // namespace spyre
