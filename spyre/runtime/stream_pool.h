#pragma once

#include <array>
#include <mutex>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/runtime/stream.h"

namespace spyre {

/// The streams of one card. Ids say what a stream is for:
///
///     0        default
///     1..32    low priority pool,  handed out in turn
///     33..64   high priority pool, handed out in turn
///     65..     host compute: work that prepares launches on the host
///
/// A stream object costs nothing until work is queued on it (stream.h). Pool streams come into being when
/// they are first handed out; after 32 the pool starts again, so two callers may share one.
class StreamPool {
 public:
  static constexpr int kPoolSize = 32;
  static constexpr int kFirstLow = 1;
  static constexpr int kFirstHigh = kFirstLow + kPoolSize;
  static constexpr int kFirstHostCompute = kFirstHigh + kPoolSize;
  static constexpr int kMaxHostCompute = 8;

  /// More than kMaxHostCompute host-compute streams are taken as that many. All have the same clock.
  StreamPool(int device_index, int host_compute_streams,
             std::shared_ptr<DeviceClock> clock = std::make_shared<DeviceClock>(),
             CardStatus& status = unpublished_status());

  DeviceClock& clock() const { return *clock_; }

  StreamRef default_stream() const { return streams_[0]; }

  /// The next stream of the low pool when priority is 0, of the high pool otherwise.
  StreamRef next(int priority);

  /// The index-th host-compute stream, round and round.
  StreamRef host_compute(int index) const;

  /// A stream by id; kNotFound when no such stream was handed out.
  Result<StreamRef> find(int id) const;

  /// Waits for all work given to all streams. The first error in id order.
  Status synchronize();

  /// Recovers every poisoned stream.
  Status reset();

  /// Drops what is queued on every stream (Stream::drop_queued).
  void drop_queued();

  /// Drains and closes every stream; streams handed out later are born closed.
  void close();

 private:
  std::vector<StreamRef> existing() const;

  const int device_index_;
  const int host_compute_streams_;
  const std::shared_ptr<DeviceClock> clock_;
  CardStatus& status_;
  mutable std::mutex mutex_;  // guards the members below; taken before a stream's lock
  std::array<StreamRef, kFirstHostCompute + kMaxHostCompute> streams_;
  int next_low_ = 0, next_high_ = 0;
  bool closed_ = false;
};

}  // namespace spyre
