#pragma once

#include <memory>

#include "spyre/runtime/allocator.h"
#include "spyre/runtime/stream_pool.h"

namespace spyre {

struct CardOptions {
  AllocatorOptions memory;
  int host_compute_streams = 4;
};

/// One card in use: a device, the allocator of its memory, its streams. Made by Runtime, which keeps it until
/// the process ends, so a `Card*` never dangles; after shutdown its streams refuse work.
class Card {
 public:
  Card(int index, std::shared_ptr<Device> device, CardOptions options);
  ~Card();

  int index() const { return index_; }  ///< logical: position among the visible cards
  const Machine& machine() const { return device_->machine(); }
  Device& device() const { return *device_; }
  Allocator& allocator() const { return *allocator_; }
  StreamPool& streams() { return streams_; }

  /// Short for allocator().allocate. kShutdown after the runtime was shut down.
  Result<MemoryRef> allocate(Bytes size, AllocationInfo info = {});

  /// Waits for all work given to all streams of the card. The first error in stream-id order.
  Status synchronize();

  /// Drains and closes the streams; no allocation succeeds afterwards. Idempotent.
  void close();

 private:
  const int index_;
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<Allocator> allocator_;
  StreamPool streams_;
  std::atomic<bool> closed_ = false;
};

}  // namespace spyre
