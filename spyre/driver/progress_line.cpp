#include "spyre/driver/progress_line.h"

#include <fmt/format.h>

namespace spyre {

namespace {
constexpr auto kBetweenLines = std::chrono::seconds(1);
}  // namespace

ProgressLine::ProgressLine(std::string graph, Print print, Clock clock)
    : graph_(std::move(graph)),
      print_(std::move(print)),
      clock_(std::move(clock)),
      start_(clock_()),
      next_(start_ + kBetweenLines) {}

void ProgressLine::operator()(std::string_view pass, int64_t plans) {
  const auto now = clock_();
  if (now < next_) return;
  next_ = now + kBetweenLines;
  print_(fmt::format("planning {}: {}, {} plans looked at, {} s", graph_, pass, plans,
                     std::chrono::duration_cast<std::chrono::seconds>(now - start_).count()));
}

}  // namespace spyre
