#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace spyre {

/// Turns the progress of a compilation (PassLog::on_progress) into a line now and then, for whoever waits:
/// nothing in the first second, then one line a second.
///
///     planning softmax: co-optimize, 4096 plans looked at, 2 s
///
/// Where lines go is the caller's choice.
class ProgressLine {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  using Print = std::function<void(const std::string& line)>;

  ProgressLine(std::string graph, Print print, Clock clock = std::chrono::steady_clock::now);

  void operator()(std::string_view pass, int64_t plans);

 private:
  std::string graph_;
  Print print_;
  Clock clock_;
  std::chrono::steady_clock::time_point start_, next_;
};

}  // namespace spyre
