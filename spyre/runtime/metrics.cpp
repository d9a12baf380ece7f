#include "spyre/runtime/metrics.h"

#include <array>
#include <atomic>
#include <mutex>

namespace spyre {
namespace {

constexpr auto kMetrics = static_cast<size_t>(Metric::kCount);
std::array<std::atomic<int64_t>, kMetrics> counters;

std::atomic<int64_t>& counter(Metric metric) {
  return counters[static_cast<size_t>(metric)];
}

/// Slow executes are rare, so their names may take a lock.
struct InterpretedOps {
  std::mutex mutex;
  std::map<std::string, int64_t> executes;
};

InterpretedOps& interpreted() {
  static auto* ops = new InterpretedOps;  // never destroyed: streams may end after statics do
  return *ops;
}

}  // namespace

std::string_view to_string(Metric metric) {
  switch (metric) {
    case Metric::kAllocations:
      return "allocations";
    case Metric::kFrees:
      return "frees";
    case Metric::kAllocationRetries:
      return "allocation_retries";
    case Metric::kOutOfMemory:
      return "out_of_memory";
    case Metric::kTransfersToDevice:
      return "transfers_to_device";
    case Metric::kBytesToDevice:
      return "bytes_to_device";
    case Metric::kTransfersToHost:
      return "transfers_to_host";
    case Metric::kBytesToHost:
      return "bytes_to_host";
    case Metric::kTransfersBetween:
      return "transfers_between";
    case Metric::kBytesBetween:
      return "bytes_between";
    case Metric::kLaunches:
      return "launches";
    case Metric::kExecutes:
      return "executes";
    case Metric::kHbmBytesRead:
      return "hbm_bytes_read";
    case Metric::kHbmBytesWritten:
      return "hbm_bytes_written";
    case Metric::kLxBytesRead:
      return "lx_bytes_read";
    case Metric::kLxBytesWritten:
      return "lx_bytes_written";
    case Metric::kRingBytes:
      return "ring_bytes";
    case Metric::kMacs:
      return "macs";
    case Metric::kVectorElements:
      return "vector_elements";
    case Metric::kInterpretedExecutes:
      return "interpreted_executes";
    case Metric::kProgramCacheHits:
      return "program_cache_hits";
    case Metric::kProgramCacheMisses:
      return "program_cache_misses";
    case Metric::kEagerCacheHits:
      return "eager_cache_hits";
    case Metric::kEagerCacheMisses:
      return "eager_cache_misses";
    case Metric::kGraphsCompiled:
      return "graphs_compiled";
    case Metric::kTracesRead:
      return "traces_read";
    case Metric::kWorkEnqueued:
      return "work_enqueued";
    case Metric::kWorkInline:
      return "work_inline";
    case Metric::kWorkFailed:
      return "work_failed";
    case Metric::kStreamSyncs:
      return "stream_syncs";
    case Metric::kDeviceSyncs:
      return "device_syncs";
    case Metric::kEventsRecorded:
      return "events_recorded";
    case Metric::kCount:
      break;
  }
  return "unknown";
}

void count(Metric metric, int64_t amount) {
  counter(metric).fetch_add(amount, std::memory_order_relaxed);
}

void count_interpreted(std::string_view op, int64_t executes) {
  count(Metric::kInterpretedExecutes, executes);
  const std::lock_guard lock(interpreted().mutex);
  interpreted().executes[std::string(op)] += executes;
}

std::map<std::string, int64_t> interpreted_ops() {
  const std::lock_guard lock(interpreted().mutex);
  return interpreted().executes;
}

int64_t metric(Metric metric) {
  return counter(metric).load(std::memory_order_relaxed);
}

std::map<std::string, int64_t> metrics_snapshot() {
  std::map<std::string, int64_t> out;
  for (size_t i = 0; i < kMetrics; ++i) {
    const auto which = static_cast<Metric>(i);
    out.emplace(to_string(which), metric(which));
  }
  return out;
}

void reset_metrics() {
  for (auto& each : counters) {
    each.store(0, std::memory_order_relaxed);
  }
  const std::lock_guard lock(interpreted().mutex);
  interpreted().executes.clear();
}

}  // namespace spyre
