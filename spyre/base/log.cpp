#include "spyre/base/log.h"

#include <mutex>
#include <utility>

namespace spyre {
namespace {

std::mutex& sink_mutex() {
  static auto& mutex = *new std::mutex;  // never destroyed, as the sink: threads may log after `exit`
  return mutex;
}

LogSink& current_sink() {
  static auto& sink = *new LogSink;
  return sink;
}

}  // namespace

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

LogSink set_log_sink(LogSink sink) {
  const std::lock_guard lock(sink_mutex());
  return std::exchange(current_sink(), std::move(sink));
}

void log(LogLevel level, std::string_view layer, std::string_view text) {
  const std::lock_guard lock(sink_mutex());
  if (current_sink()) {
    current_sink()(level, layer, text);
  }
}

}  // namespace spyre
