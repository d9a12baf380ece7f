#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace spyre {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

std::string_view to_string(LogLevel level);

/// Receives each message: its level, the layer that speaks (`runtime`, `device`), the text.
/// Called from any thread, one call at a time.
using LogSink = std::function<void(LogLevel, std::string_view layer, std::string_view text)>;

/// Core libraries never print: they log, and the edge decides where it goes. With no sink, messages are
/// dropped. Returns the sink that was there before.
LogSink set_log_sink(LogSink sink);

void log(LogLevel level, std::string_view layer, std::string_view text);

}  // namespace spyre
