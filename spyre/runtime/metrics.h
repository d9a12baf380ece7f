#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace spyre {

/// What happened in this process since it began, counted exactly: every event adds, none is sampled.
/// One row per counter; the name is what `metrics_snapshot` and `torch.spyre` show.
enum class Metric {
  kAllocations,        ///< `allocations`: blocks handed out, programs included
  kFrees,              ///< `frees`: blocks taken back
  kAllocationRetries,  ///< `allocation_retries`: attempts repeated after the memory-pressure callback
  kOutOfMemory,        ///< `out_of_memory`: allocations refused
  kTransfersToDevice,  ///< `transfers_to_device`
  kBytesToDevice,      ///< `bytes_to_device`: device bytes, padding included
  kTransfersToHost,    ///< `transfers_to_host`
  kBytesToHost,        ///< `bytes_to_host`
  kTransfersBetween,   ///< `transfers_between`: device to device, on one card or two
  kBytesBetween,       ///< `bytes_between`
  kLaunches,           ///< `launches`: programs started on a card
  kExecutes,           ///< `executes`: device operations that programs ran; this and the next while counting
  kHbmBytesRead,       ///< `hbm_bytes_read`: by programs, from device memory; rules in device/exec/counters.h
  kHbmBytesWritten,    ///< `hbm_bytes_written`
  kLxBytesRead,        ///< `lx_bytes_read`: by programs, from scratchpads
  kLxBytesWritten,     ///< `lx_bytes_written`
  kRingBytes,          ///< `ring_bytes`: sent from core to core
  kMacs,               ///< `macs`: multiply-adds of the matrix unit
  kVectorElements,     ///< `vector_elements`: elements of the vector unit
  kInterpretedExecutes,  ///< `interpreted_executes`: those that the fast executor had no code for, and that ran slowly
  kProgramCacheHits,    ///< `program_cache_hits`: images that were decoded before
  kProgramCacheMisses,  ///< `program_cache_misses`: images that had to be decoded
  kEagerCacheHits,      ///< `eager_cache_hits`: eager calls whose kernel was there
  kEagerCacheMisses,    ///< `eager_cache_misses`: eager calls that had to be compiled, or refused, first
  kGraphsCompiled,      ///< `graphs_compiled`: graphs of torch.compile given to the compiler
  kTracesRead,          ///< `traces_read`: calls of torch.compile that an earlier process traced and compiled
  kWorkEnqueued,        ///< `work_enqueued`: items given to a stream's thread
  kWorkInline,          ///< `work_inline`: items run on the calling thread, the stream being idle
  kWorkFailed,          ///< `work_failed`
  kStreamSyncs,         ///< `stream_syncs`: times a thread asked to wait for a stream
  kDeviceSyncs,         ///< `device_syncs`
  kEventsRecorded,      ///< `events_recorded`
  kCount,               // not a counter
};

std::string_view to_string(Metric metric);

/// Adds to a counter. Wait-free; any thread.
void count(Metric metric, int64_t amount = 1);

/// Counts executes that the interpreter ran for the fast executor, by the name of their op function.
void count_interpreted(std::string_view op, int64_t executes);
/// Those of this process, by op function; their sum is `interpreted_executes`.
std::map<std::string, int64_t> interpreted_ops();

int64_t metric(Metric metric);

/// All counters by name, sorted. Each value is exact; values of one snapshot may be a few events apart while
/// other threads work.
std::map<std::string, int64_t> metrics_snapshot();

/// All counters back to zero.
void reset_metrics();

}  // namespace spyre
