#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>

#include <atomic>
#include <set>
#include <tuple>

#include "glue/bindings.h"
#include "glue/device_state.h"
#include "glue/dtype.h"
#include "glue/error.h"
#include "glue/fallback.h"
#include "glue/generator.h"
#include "glue/log_filter.h"
#include "spyre/base/settings.h"
#include "spyre/base/thread_pool.h"
#include "spyre/runtime/metrics.h"

namespace spyre::glue {
namespace {

enum class StreamError { Success, Shutdown };
enum class DeviceState { Ok, NotInitialized, StreamError };

c10::Stream unpack_stream(int64_t id, c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, spyre_device(device), id);
}

StreamError stream_error(const py::object& stream) {
  const auto id = stream.attr("stream_id").cast<int64_t>();
  const auto device = stream.attr("device_index").cast<c10::DeviceIndex>();
  return stream_of(unpack_stream(id, device))->query().ok() ? StreamError::Success : StreamError::Shutdown;
}

/// The host-compute streams of a card, one after another.
py::object next_host_compute_stream(const py::object& device) {
  static std::atomic<int> next{0};
  const py::module_ streams = py::module_::import("torch_spyre.streams");
  const auto index = streams.attr("_index")(device).cast<c10::DeviceIndex>();
  const StreamRef stream = card(resolve_index(index)).streams().host_compute(next++);
  return streams.attr("_make")(resolve_index(index), stream->id());
}

py::object default_generator_of(c10::DeviceIndex index) {
  return py::reinterpret_steal<py::object>(THPGenerator_initDefaultGenerator(default_generator(index)));
}

DeviceState device_state() {
  Runtime& runtime = Runtime::instance();
  if (!runtime.started()) {
    return DeviceState::NotInitialized;
  }
  for (int id = 0; id < StreamPool::kFirstHostCompute; ++id) {
    const auto stream = card(current_device()).streams().find(id);
    if (stream.ok() && !stream.value()->query().ok()) {
      return DeviceState::StreamError;
    }
  }
  return DeviceState::Ok;
}

/// One warning for each operator and line of Python that leads to it.
class PythonReporter {
 public:
  explicit PythonReporter(py::object category) : category_(std::move(category)) {}

  void operator()(const std::string& op, const std::string& message) {
    const py::gil_scoped_acquire gil;
    PyFrameObject* frame = PyEval_GetFrame();  // borrowed; null on threads without Python code
    const void* code = nullptr;
    int line = 0;
    if (frame != nullptr) {
      PyCodeObject* object = PyFrame_GetCode(frame);
      code = object;
      line = PyFrame_GetLineNumber(frame);
      Py_DECREF(object);
    }
    if (!seen_.emplace(op, code, line).second) {
      return;
    }
    if (PyErr_WarnEx(category_.ptr(), message.c_str(), 1) != 0) {
      throw python_error();
    }
  }

 private:
  py::object category_;
  std::set<std::tuple<std::string, const void*, int>> seen_;
};

void install_reporter(py::object category) {
  // Shared and never freed: warnings may come while the interpreter is shutting down.
  auto* reporter = new PythonReporter(std::move(category));
  set_fallback_reporter([reporter](const std::string& op, const std::string& message) {
    if (Py_IsInitialized() != 0) {
      (*reporter)(op, message);
    }
  });
}

FallbackMode parse_mode(const std::string& word) {
  if (word == "warn") {
    return FallbackMode::kWarn;
  }
  if (word == "error") {
    return FallbackMode::kError;
  }
  if (word == "silent") {
    return FallbackMode::kSilent;
  }
  throw py::value_error("fallback mode '" + word + "' is not one of warn, error, silent");
}

std::string mode_name() {
  switch (fallback_mode()) {
    case FallbackMode::kWarn:
      return "warn";
    case FallbackMode::kError:
      return "error";
    case FallbackMode::kSilent:
      return "silent";
  }
  return "";
}

py::dict counts_by_name() {
  py::dict out;
  for (const auto& [name, count] : fallback_counts()) {
    py::dict entry;
    entry["calls"] = count.calls;
    entry["bytes"] = count.bytes;
    entry["reasons"] = count.reasons;
    out[py::str(name)] = entry;
  }
  return out;
}

py::object to_python(const SettingValue& value) {
  return std::visit([](const auto& v) -> py::object { return py::cast(v); }, value);
}

// A malformed value does not count: it is an error when a device is used, and this is what bug reports show.
py::object setting_value(std::string_view name) {
  const Result<SettingValue> value = read_setting(name);
  return to_python(value.ok() ? value.value() : setting_row(name).fallback);
}

py::list settings_table() {
  py::list rows;
  for (const Setting& row : all_settings()) {
    py::dict entry;
    entry["name"] = std::string(row.name);
    entry["default"] = to_python(row.fallback);
    entry["layer"] = std::string(row.layer);
    entry["config"] = std::string(row.config);
    entry["meaning"] = std::string(row.meaning);
    entry["implemented"] = row.implemented;
    entry["changes_code"] = row.changes_code;
    entry["is_set"] = setting_is_set(row.name);
    const Result<SettingValue> value = read_setting(row.name);
    entry["value"] = setting_value(row.name);
    entry["error"] = value.ok() ? std::string() : value.error().message;
    rows.append(entry);
  }
  return rows;
}

py::dict properties(c10::DeviceIndex device) {
  const Machine& machine = spyre_card();
  (void)resolve_index(device);
  py::dict out;
  out["name"] = "Emulated IBM Spyre";
  out["type"] = "dd2";
  out["multi_processor_count"] = machine.cores;
  out["lx_bytes_per_core"] = machine.lx_per_core.count();
  out["stick_bytes"] = kStickBytes.count();
  out["span_limit"] = machine.span_limit.count();
  out["segments"] = machine.segments;
  out["segment_bytes"] = machine.segment_bytes.count();
  out["total_memory"] = unwrap(Runtime::instance().tensor_memory()).count();
  out["ring_bytes_per_cycle"] = machine.ring_bytes_per_cycle.count();
  return out;
}

void apply_thread_setting() {
  const Result<int64_t> threads = read_int("SPYRE_THREADS");
  if (threads.ok() && threads.value() > 0) {
    set_parallel_threads(static_cast<int>(threads.value()));
  }
}

}  // namespace

void bind_device(py::module& module) {
  Runtime& runtime = Runtime::instance();
  module.def("_device_count", &device_count);
  module.def("_current_device", &current_device);
  module.def("_set_device", &set_current_device, py::arg("index"));
  module.def("_is_initialized", [&runtime] { return runtime.started() && !runtime.in_bad_fork(); });
  module.def("_is_in_bad_fork", [&runtime] { return runtime.in_bad_fork(); });
  module.def(
      "start_runtime", [&runtime] { check(runtime.start()); }, "Starts the runtime if it is not running.");
  module.def(
      "free_runtime", [&runtime] { runtime.shutdown(); }, py::call_guard<py::gil_scoped_release>(),
      "Finishes queued work and ends the runtime for good.");
  module.def(
      "_stop_at_exit", [&runtime] { runtime.shutdown(Runtime::Queued::kDrop); },
      py::call_guard<py::gil_scoped_release>(), "Ends the runtime and drops what is queued.");
  module.def(
      "_synchronize", [](c10::DeviceIndex index) { check(card(resolve_index(index)).synchronize()); },
      py::arg("index"), py::call_guard<py::gil_scoped_release>());
  module.def(
      "_synchronize_all",
      [&runtime] {
        if (runtime.started()) {
          check(runtime.synchronize());
        }
      },
      py::call_guard<py::gil_scoped_release>());
  module.def("_device_properties", &properties, py::arg("index"));

  module.def(
      "_new_stream", [](c10::DeviceIndex index, int priority) { return new_stream(index, priority).id(); },
      py::arg("index"), py::arg("priority"));
  module.def(
      "_current_stream", [](c10::DeviceIndex index) { return current_stream(index).id(); }, py::arg("index"));
  module.def(
      "_set_stream",
      [](int64_t id, c10::DeviceIndex device) {
        (void)stream_of(unpack_stream(id, device));
        return exchange_stream(unpack_stream(id, device)).id();
      },
      py::arg("id"), py::arg("index"));
  module.def("_device_time_ms", [](int64_t id, c10::DeviceIndex device) {
    const StreamRef stream = stream_of(unpack_stream(id, device));
    TORCH_CHECK(stream->clock().runs(),
                "the simulated clock does not run\n  try  the setting SPYRE_DEVICE_TIME=1");
    return stream->device_time().us() / 1000;
  });
  module.def("_stream_priority", [](int64_t id, c10::DeviceIndex device) {
    return stream_of(unpack_stream(id, device))->priority();
  });
  // PyTorch's own elapsed_time refuses subclasses of torch.Event; an event's id is what the guard calls its handle.
  module.def("_event_elapsed_ms", [](uintptr_t start, uintptr_t end) {
    TORCH_CHECK(start != 0 && end != 0, "Both events must be recorded before calculating elapsed time.");
    return unwrap(reinterpret_cast<Event*>(start)->elapsed_ms(*reinterpret_cast<Event*>(end)));  // NOLINT
  });
  module.def("host_compute_stream", &next_host_compute_stream, py::arg("device") = py::none(),
             "A stream for work that prepares launches on the host: those of the card, one after another.");
  py::enum_<StreamError>(module, "SpyreStreamError")
      .value("Success", StreamError::Success)
      .value("Shutdown", StreamError::Shutdown);
  py::enum_<DeviceState>(module, "SpyreDeviceState")
      .value("Ok", DeviceState::Ok)
      .value("NotInitialized", DeviceState::NotInitialized)
      .value("StreamError", DeviceState::StreamError);
  module.def("stream_get_error", &stream_error, py::arg("stream"));
  module.def("stream_get_error_string",
             [](StreamError error) { return error == StreamError::Success ? "Success" : "Shutdown"; });
  module.def("get_device_state", &device_state);

  module.def("_get_default_generator", &default_generator_of, py::arg("device") = -1);

  module.def("get_downcast_warning", &downcast_warning);
  module.def("set_downcast_warning", &set_downcast_warning, py::arg("enabled"));
  module.def("_install_fallback_warning", &install_reporter, py::arg("category"));
  module.def("get_fallback_mode", &mode_name);
  module.def(
      "set_fallback_mode", [](const std::string& word) { set_fallback_mode(parse_mode(word)); },
      py::arg("mode"));
  module.def("fallback_counts", &counts_by_name);
  module.def("metrics", &metrics_snapshot);
  module.def("interpreted_ops", &interpreted_ops);
  module.def("_count_trace_read", [] { count(Metric::kTracesRead); });
  module.def("reset_metrics", [] {
    reset_metrics();
    reset_fallback_counts();
  });

  module.def("settings", &settings_table);
  module.def("setting", &setting_value, py::arg("name"),
             "Its value, the default where the environment's is malformed.");
  module.def("settings_markdown", &settings_markdown);
  module.def("ignored_settings", [] {
    std::vector<std::string> names;
    for (const std::string_view name : ignored_settings()) {
      names.emplace_back(name);
    }
    return names;
  });
  // While `import torch` runs: malformed values are an error when a device is used, not here.
  module.def("_apply_settings", [] {
    apply_thread_setting();
    if (const Result<bool> debug = read_bool("TORCH_SPYRE_DEBUG"); debug.ok() && debug.value()) {
      LogFilter::instance().set_level("spyre", 10);
    }
  });
  module.def("set_num_threads", &set_parallel_threads, py::arg("threads"));
  module.def("get_num_threads", &parallel_threads);
}

}  // namespace spyre::glue
