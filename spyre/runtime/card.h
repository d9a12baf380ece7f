#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "spyre/device/execute.h"
#include "spyre/runtime/allocator.h"
#include "spyre/runtime/program_cache.h"
#include "spyre/runtime/stream_pool.h"

namespace spyre {

struct CardOptions {
  AllocatorOptions memory;
  int host_compute_streams = 4;
  ExecuteOptions execution;
};

/// One card in use: a device, the allocator of its memory, its streams. Made by Runtime, which keeps it until
/// the process ends, so a `Card*` never dangles; after shutdown its streams refuse work.
class Card {
 public:
  /// Cards of one machine may share their cache of programs; without one the card has its own.
  Card(int index, std::shared_ptr<Device> device, CardOptions options,
       std::shared_ptr<ProgramCache> programs = nullptr);
  ~Card();

  int index() const { return index_; }  ///< logical: position among the visible cards
  const Machine& machine() const { return device_->machine(); }
  Device& device() const { return *device_; }
  Allocator& allocator() const { return *allocator_; }
  StreamPool& streams() { return streams_; }
  ProgramCache& programs() const { return *programs_; }

  /// Runs a program on the cores, now, on the calling thread; waits while another one has them. For work in
  /// its place on a stream (launch.h). The bundle's own pool is one block for all programs of the card, as
  /// large as the largest asked for: what is in it ends with the run. It lies in the program segment.
  Result<exec::RunCounts> run(const LoadedProgram& program, std::vector<int64_t> parameters,
                              std::vector<MappedBytes> memory);

  /// How programs run from now on.
  void set_execution(ExecuteOptions options);

  /// After a fault: forgets the errors of all streams, once they are idle, and poisons the scratchpads.
  /// Memory stays as it is.
  Status reset();

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
  const std::shared_ptr<ProgramCache> programs_;
  StreamPool streams_;
  std::atomic<bool> closed_ = false;

  std::mutex cores_;  // held while a program runs; after a plan's lock, before the allocator's
  MemoryRef pool_;
  ExecuteOptions execution_;
};

}  // namespace spyre
