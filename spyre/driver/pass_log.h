#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// A program on its way through the passes: as captured up to `select-ops`, from there on as the card runs it.
using AnyGraph = std::variant<Graph, DeviceGraph>;
std::string to_text(const AnyGraph& graph);

/// Runs passes one by one, times them, checks the graph after each, and shows it to whoever wants to see.
class PassLog {
 public:
  struct Entry {
    std::string pass;
    std::chrono::nanoseconds time;
    bool changed;
  };
  using Observer = std::function<void(std::string_view pass, const AnyGraph& after, bool changed)>;

  PassLog() = default;
  /// Called after every pass. Comparing graphs costs time, so without an observer `changed` is always true.
  explicit PassLog(Observer observer) : observer_(std::move(observer)) {}

  /// Called when a pass or step begins, with no plans, and while it searches, for every plan it has looked at.
  using Progress = std::function<void(std::string_view pass, int64_t plans)>;
  void on_progress(Progress progress) { progress_ = std::move(progress); }
  /// What a pass calls for every plan; nothing when nobody listens. Holds on to this log.
  std::function<void()> progress_of(std::string_view pass);

  Status run(std::string_view pass, AnyGraph& graph, const std::function<Status(AnyGraph&)>& body);

  /// Times a step that changes no graph. Not shown to the observer.
  Status time(std::string_view step, const std::function<Status()>& body);

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Observer observer_;
  Progress progress_;
  std::vector<Entry> entries_;
};

}  // namespace spyre
