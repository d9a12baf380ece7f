#include "spyre/device/timing/chrome_trace.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "spyre/base/json.h"

namespace spyre::timing {
namespace {

// Perfetto takes 0 for the system's idle thread, and a thread with the number of its process for that process.
constexpr int kExecutes = 1;      // process of the executes and counters, and their thread
constexpr int kCores = 2;         // process of the cores, one thread each
constexpr int kFirstCore = 1000;  // thread of core 0

/// Events as text, one to a line: a trace may have millions.
class Events {
 public:
  void name(int process, std::string_view of_process) {
    add({{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", of_process}}}});
  }
  void name(int process, int thread, std::string_view of_thread) {
    add({{"ph", "M"},
         {"pid", process},
         {"tid", thread},
         {"name", "thread_name"},
         {"args", {{"name", of_thread}}}});
  }
  /// In whole ns, as readers keep it: slices that touch here must not overlap there.
  void slice(int process, int thread, std::string_view name, Nanos begin, Nanos end, const Json& args) {
    const auto from = std::llround(begin.ns), to = std::llround(end.ns);
    if (from == to) return;
    text_ +=
        fmt::format(R"({}{{"ph":"X","pid":{},"tid":{},"name":{},"ts":{}.{:03},"dur":{}.{:03},"args":{}}})",
                    separator(), process, thread, Json(name).dump(), from / 1000, from % 1000,
                    (to - from) / 1000, (to - from) % 1000, args.dump());
  }
  void counter(std::string_view name, Nanos at, const Json& values) {
    text_ += fmt::format(R"({}{{"ph":"C","pid":{},"name":{},"ts":{:.6f},"args":{}}})", separator(), kExecutes,
                         Json(name).dump(), at.us(), values.dump());
  }
  std::string take() { return std::move(text_) + "\n]}\n"; }

 private:
  void add(const Json& event) { text_ += separator() + event.dump(); }
  std::string separator() { return std::exchange(first_, false) ? "" : ",\n"; }

  bool first_ = true;
  std::string text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
};

std::string name_of(const program::DeviceProgram& program, const Timeline& timeline, int execute) {
  const program::ProgramOp& op =
      program.ops[static_cast<size_t>(timeline.executes[static_cast<size_t>(execute)].op)];
  return fmt::format("{} {} ({})", execute, op.file, op.name);
}

void add_executes(const Timeline& timeline, const program::DeviceProgram& program, Events& events) {
  events.name(kExecutes, "card");
  events.name(kExecutes, kExecutes, "executes");
  for (size_t i = 0; i < timeline.executes.size(); ++i) {
    const ExecuteTime& time = timeline.executes[i];
    events.slice(kExecutes, kExecutes, name_of(program, timeline, static_cast<int>(i)), time.begin, time.end,
                 {{"bound_by", to_string(time.bound)},
                  {"read", time.read.count()},
                  {"written", time.written.count()},
                  {"memory_us", time.memory.us()},
                  {"matrix_us", time.matrix.us()},
                  {"vector_us", time.vector.us()},
                  {"lx_us", time.lx.us()},
                  {"ring_us", time.ring.us()}});
  }
}

void add_cores(const Timeline& timeline, const program::DeviceProgram& program, Events& events) {
  events.name(kCores, "cores");
  for (const int core : timeline.cores) {
    events.name(kCores, kFirstCore + core, fmt::format("core {}", core));
    for (const Phase& state : core_states(timeline, core)) {
      const Json args = state.unit == Unit::kIdle
                            ? Json::object()
                            : Json{{"execute", name_of(program, timeline, state.execute)}};
      events.slice(kCores, kFirstCore + core, to_string(state.unit), state.begin, state.end, args);
    }
  }
}

/// What one unit of all cores does per ns, from one change to the next.
void add_rate(const Timeline& timeline, Unit unit, std::string_view name, Events& events) {
  std::map<double, double> changes;
  for (const Phase& phase : timeline.phases) {
    if (phase.unit != unit || phase.end <= phase.begin) continue;
    const double rate = static_cast<double>(phase.amount) / (phase.end - phase.begin).ns;
    changes[phase.begin.ns] += rate;
    changes[phase.end.ns] -= rate;
  }
  double rate = 0;
  for (const auto& [at, change] : changes) {
    rate += change;
    events.counter(name, {at}, {{"value", rate}});
  }
}

}  // namespace

std::string chrome_trace(const Timeline& timeline, const program::DeviceProgram& program) {
  Events events;
  add_executes(timeline, program, events);
  add_cores(timeline, program, events);
  for (const MemorySpeed& speed : timeline.memory) {
    events.counter("off-chip GB/s", speed.begin, {{"read", speed.read}, {"written", speed.written}});
  }
  events.counter("off-chip GB/s", timeline.kernel, {{"read", 0}, {"written", 0}});
  add_rate(timeline, Unit::kRing, "ring GB/s", events);
  add_rate(timeline, Unit::kMatrix, "MAC/ns", events);
  return events.take();
}

}  // namespace spyre::timing
