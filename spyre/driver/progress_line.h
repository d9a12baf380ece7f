#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace spyre {

/// What a compilation does, for whoever waits for it: on a terminal one line that is written over and goes when the
/// work is done, elsewhere a line now and then.
///
///     spyre: tracing: layer 12 of 40, 3 s
///     spyre: compiling kernel 2 of 7: co-optimize, 4096 plans, 8 s
///
/// Nothing is shown in the first second, nor before the work has said what it does. A thread draws, so that the
/// seconds go on while whoever works is busy; it lives from `begin` to `end`. Others write to the same terminal: what
/// `erase` removes comes back when they are at the beginning of a line again.
class ProgressLine {
 public:
  struct Screen {
    std::function<void(std::string_view bytes)> write;
    /// How wide it is. Of a file or a log, where nothing can be written over: none.
    std::function<int()> columns;
  };
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  explicit ProgressLine(Screen screen, Clock clock = std::chrono::steady_clock::now);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Work begins and ends; inside other work it belongs to that, whatever it says it is.
  void begin(std::string what = "");
  void end();

  /// What is done now: `what` stands until the next call, `step` until the next step. Without begun work, nothing.
  void now(std::string what, std::string step = "");
  /// A part of what is done now: a pass, and the plans that it has looked at.
  void pass(std::string_view name, int64_t plans);

  /// Somebody else is about to write: nothing is drawn until they have.
  void erase();
  /// They have, and the cursor is at the beginning of a line, or is not yet.
  void others_wrote(bool line_ended);

  /// Shows what there is to show; called by the thread, and by tests that begin work without one.
  void draw();
  void begin_without_thread(std::string what = "");

 private:
  bool begin_locked(std::string what);  // whether it is no part of other work
  std::string text() const;
  void erase_locked();
  void draw_locked();
  void run(const std::stop_token& stop);

  Screen screen_;
  Clock clock_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
  int depth_ = 0;
  std::string what_, step_;
  std::chrono::steady_clock::time_point start_, next_;
  bool drawn_ = false, line_ended_ = true;
};

}  // namespace spyre
