#include "spyre/driver/pass_log.h"

#include <fmt/format.h>

namespace spyre {

std::string to_text(const AnyGraph& graph) {
  return std::visit([](const auto& kind) { return to_text(kind); }, graph);
}

Status PassLog::run(std::string_view pass, AnyGraph& graph, const std::function<Status(AnyGraph&)>& body) {
  if (progress_) progress_(pass, 0);
  const AnyGraph before = observer_ ? graph : AnyGraph();
  const auto start = std::chrono::steady_clock::now();
  SPYRE_TRY(body(graph));
  const auto time = std::chrono::steady_clock::now() - start;
  const Status verified = std::visit([](const auto& kind) { return verify(kind); }, graph);
  SPYRE_CHECK(verified.ok(), fmt::format("after {}: {}", pass, verified.error().message));
  const bool changed = !observer_ || !(before == graph);
  entries_.push_back(
      {std::string(pass), std::chrono::duration_cast<std::chrono::nanoseconds>(time), changed});
  if (observer_) observer_(pass, graph, changed);
  return Status();
}

Status PassLog::time(std::string_view step, const std::function<Status()>& body) {
  if (progress_) progress_(step, 0);
  const auto start = std::chrono::steady_clock::now();
  SPYRE_TRY(body());
  const auto time = std::chrono::steady_clock::now() - start;
  entries_.push_back({std::string(step), std::chrono::duration_cast<std::chrono::nanoseconds>(time), false});
  return Status();
}

std::function<void()> PassLog::progress_of(std::string_view pass) {
  if (!progress_) return nullptr;
  return [this, name = std::string(pass), plans = int64_t{0}]() mutable { progress_(name, ++plans); };
}

}  // namespace spyre
