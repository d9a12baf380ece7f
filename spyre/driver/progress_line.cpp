#include "spyre/driver/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spyre {

namespace {
constexpr auto kSilence = std::chrono::seconds(1);
constexpr auto kBetweenLines = std::chrono::seconds(1);
constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr std::string_view kEraseLine = "\r\x1b[K";
}  // namespace

ProgressLine::ProgressLine(Screen screen, Clock clock)
    : screen_(std::move(screen)), clock_(std::move(clock)) {}

ProgressLine::~ProgressLine() = default;

bool ProgressLine::begin_locked(std::string what) {
  if (depth_++ > 0) return false;
  start_ = clock_();
  next_ = start_ + kSilence;
  what_ = std::move(what);
  step_.clear();
  return true;
}

void ProgressLine::begin_without_thread(std::string what) {
  const std::scoped_lock lock(mutex_);
  begin_locked(std::move(what));
}

void ProgressLine::begin(std::string what) {
  const std::scoped_lock lock(mutex_);
  if (begin_locked(std::move(what)))
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void ProgressLine::end() {
  std::jthread ended;
  {
    const std::scoped_lock lock(mutex_);
    if (depth_ == 0 || --depth_ > 0) return;
    erase_locked();
    what_.clear();
    ended = std::move(thread_);
  }
  // Joined here, without the lock.
}

void ProgressLine::now(std::string what, std::string step) {
  const std::scoped_lock lock(mutex_);
  if (depth_ == 0) return;
  what_ = std::move(what);
  step_ = std::move(step);
}

void ProgressLine::pass(std::string_view name, int64_t plans) {
  const std::scoped_lock lock(mutex_);
  if (depth_ == 0) return;
  step_ = plans > 0 ? fmt::format("{}, {} plans", name, plans) : std::string(name);
}

void ProgressLine::erase() {
  const std::scoped_lock lock(mutex_);
  erase_locked();
  line_ended_ = false;
}

void ProgressLine::others_wrote(bool line_ended) {
  const std::scoped_lock lock(mutex_);
  line_ended_ = line_ended;
}

void ProgressLine::draw() {
  const std::scoped_lock lock(mutex_);
  draw_locked();
}

std::string ProgressLine::text() const {
  const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(clock_() - start_).count();
  return fmt::format("spyre: {}{}{}, {} s", what_, step_.empty() ? "" : ": ", step_, elapsed);
}

void ProgressLine::erase_locked() {
  if (std::exchange(drawn_, false)) screen_.write(kEraseLine);
}

void ProgressLine::draw_locked() {
  if (depth_ == 0 || what_.empty() || clock_() < next_) return;
  if (!screen_.columns) {
    next_ = clock_() + kBetweenLines;
    screen_.write(text() + "\n");
    return;
  }
  if (!drawn_ && !line_ended_) return;
  // One column less than there are: a full line moves the cursor on.
  const auto room = static_cast<size_t>(std::max(screen_.columns() - 1, 0));
  screen_.write(std::string(kEraseLine) + text().substr(0, room));
  drawn_ = true;
}

void ProgressLine::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, kBetweenDrawings, [] { return false; });
    if (!stop.stop_requested()) draw_locked();
  }
}

}  // namespace spyre
