// Memory figures for Python, and the snapshot in the form PyTorch's memory viewer reads.

#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/profiler/python/combined_traceback.h>

#include <atomic>

#include "glue/bindings.h"
#include "glue/device_state.h"
#include "glue/error.h"

namespace spyre::glue {
namespace {

std::atomic<bool> recording{false};

std::shared_ptr<void> gather_frames() {
  return torch::CapturedTraceback::gather(true, false, false);
}

py::object frames_of(const std::shared_ptr<void>& frames) {
  if (frames == nullptr) {
    return py::list();
  }
  std::vector<torch::CapturedTraceback*> one = {static_cast<torch::CapturedTraceback*>(frames.get())};
  return torch::py_symbolize(one).at(0);
}

int64_t address_value(DeviceAddress address) {
  return static_cast<int64_t>(address.value());
}

py::dict block_entry(const BlockSnapshot& block) {
  py::dict entry;
  entry["address"] = address_value(block.range.begin);
  entry["size"] = block.range.size.count();
  entry["requested_size"] = block.requested.count();
  entry["state"] = block.live ? "active_allocated" : "inactive";
  entry["frames"] = frames_of(block.frames);
  entry["description"] = block.description;
  return entry;
}

py::dict segment_entry(c10::DeviceIndex device, const SegmentSnapshot& segment) {
  py::dict entry;
  entry["device"] = int(device);
  entry["address"] = address_value(segment.range.begin);
  entry["total_size"] = segment.range.size.count();
  entry["allocated_size"] = segment.allocated.count();
  entry["active_size"] = segment.allocated.count();
  entry["requested_size"] = segment.requested.count();
  entry["stream"] = 0;
  entry["segment_type"] = "large";
  entry["segment_pool_id"] = py::make_tuple(0, 0);
  entry["is_expandable"] = false;
  entry["frames"] = py::list();
  py::list blocks;
  for (const BlockSnapshot& block : segment.blocks) {
    blocks.append(block_entry(block));
  }
  entry["blocks"] = blocks;
  return entry;
}

py::dict trace_entry(const HistoryEntry& event) {
  py::dict entry;
  const bool out_of_memory = event.action == HistoryEntry::Action::kOutOfMemory;
  entry["action"] = out_of_memory                                  ? "oom"
                    : event.action == HistoryEntry::Action::kAlloc ? "alloc"
                                                                   : "free_completed";
  entry[out_of_memory ? "device_free" : "addr"] = out_of_memory ? 0 : address_value(event.address);
  entry["size"] = event.size.count();
  entry["stream"] = 0;
  entry["time_us"] = event.time_us;
  entry["frames"] = frames_of(event.frames);
  return entry;
}

py::dict snapshot() {
  py::list segments;
  py::list traces;
  for (c10::DeviceIndex i = 0; Runtime::instance().started() && i < device_count(); ++i) {
    const Allocator& allocator = card(i).allocator();
    for (const SegmentSnapshot& segment : allocator.snapshot()) {
      segments.append(segment_entry(i, segment));
    }
    py::list trace;
    for (const HistoryEntry& event : allocator.history()) {
      trace.append(trace_entry(event));
    }
    traces.append(trace);
  }
  py::dict out;
  out["segments"] = segments;
  out["device_traces"] = traces;
  out["allocator_settings"] = py::dict();
  out["external_annotations"] = py::list();
  return out;
}

void record_history(int64_t max_entries) {
  recording.store(max_entries > 0);
  for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
    card(i).allocator().record_history(static_cast<size_t>(max_entries));
  }
}

py::dict memory_info(c10::DeviceIndex device) {
  const MemoryInfo info = card(resolve_index(device)).allocator().info();
  py::dict out;
  out["total"] = info.total.count();
  out["free"] = info.free.count();
  out["largest_free_block"] = info.largest_free.count();
  out["programs"] = info.programs.count();
  out["fragmentation"] = info.fragmentation;
  return out;
}

/// Upstream's raw statistics: two keys.
py::dict raw_stats(c10::DeviceIndex device) {
  const MemoryStats stats = card(resolve_index(device)).allocator().stats();
  py::dict out;
  out["allocated_bytes.all.current"] = stats.allocated_bytes.current;
  out["allocation.all.current"] = stats.allocation.current;
  return out;
}

}  // namespace

std::shared_ptr<void> allocation_frames() {
  return recording.load() ? gather_frames() : nullptr;
}

void bind_memory(py::module& module) {
  set_memory_pressure_hook([] {
    if (Py_IsInitialized() == 0) {
      return;
    }
    const py::gil_scoped_acquire gil;
    py::module::import("gc").attr("collect")();
  });
  module.def("_memory_info", &memory_info, py::arg("index"));
  module.def("_memory_snapshot", &snapshot);
  module.def("_record_memory_history", &record_history, py::arg("max_entries"));
  module.def("_spyre_get_allocator_stats", &raw_stats, py::arg("index"));
  module.def("_spyre_reset_accumulated_stats", [](c10::DeviceIndex index) {
    card(resolve_index(index)).allocator().reset_accumulated_stats();
  });
  module.def("_spyre_reset_peak_stats",
             [](c10::DeviceIndex index) { card(resolve_index(index)).allocator().reset_peak_stats(); });
}

}  // namespace spyre::glue
