#include "tools/time_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace spyre::tools {
namespace {

using timing::ExecuteTime;

constexpr size_t kMostLines = 100;

struct Sum {
  Nanos kernel, launch, memory_busy;
  Bytes read, written;
};

Sum sum_of(const std::vector<TimedProgram>& programs) {
  Sum sum;
  for (const TimedProgram& timed : programs) {
    sum.kernel = sum.kernel + timed.timeline.kernel;
    sum.launch = sum.launch + timed.timeline.launch;
    sum.memory_busy = sum.memory_busy + timed.timeline.memory_busy;
    sum.read += timed.timeline.read;
    sum.written += timed.timeline.written;
  }
  return sum;
}

std::string gb_per_s(const Json& of, double us) {
  const auto bytes = static_cast<double>(of["read"].get<int64_t>() + of["written"].get<int64_t>());
  return us > 0 ? fmt::format("{:.1f}", bytes / us / 1000) : "";
}

}  // namespace

Result<CardModel> card_model_of(const std::string& file) {
  if (file.empty()) return spyre_model();
  SPYRE_ASSIGN_OR_RETURN(const std::string text, read_text(file));
  return read_card_model(text, file);
}

Json time_json(const std::vector<TimedProgram>& programs, const CardModel& card) {
  const Sum sum = sum_of(programs);
  Json executes = Json::array();
  for (size_t p = 0; p < programs.size(); ++p) {
    for (const ExecuteTime& e : programs[p].timeline.executes) {
      const program::ProgramOp& op = programs[p].program->ops[static_cast<size_t>(e.op)];
      executes.push_back({{"program", p},
                          {"file", op.file},
                          {"op", op.name},
                          {"begin_us", e.begin.us()},
                          {"end_us", e.end.us()},
                          {"bound_by", timing::to_string(e.bound)},
                          {"memory_us", e.memory.us()},
                          {"matrix_us", e.matrix.us()},
                          {"vector_us", e.vector.us()},
                          {"lx_us", e.lx.us()},
                          {"ring_us", e.ring.us()},
                          {"read", e.read.count()},
                          {"written", e.written.count()}});
    }
  }
  return {{"machine", card.name},           {"kernel_us", sum.kernel.us()},
          {"launch_us", sum.launch.us()},   {"memory_busy_us", sum.memory_busy.us()},
          {"read", sum.read.count()},       {"written", sum.written.count()},
          {"executes", std::move(executes)}};
}

std::string time_text(const Json& time) {
  const double kernel = time["kernel_us"], launch = time["launch_us"], busy = time["memory_busy_us"];
  std::string text = fmt::format(
      "time on {}\n"
      "  kernel {:>10.2f} us  on the card; its memory is busy {:.0f} % of that{}\n"
      "  launch {:>10.2f} us  on the host\n"
      "  both   {:>10.2f} us  for a host that waits{}\n",
      time["machine"].get<std::string>(), kernel, kernel > 0 ? 100 * busy / kernel : 0.0,
      kernel > 0 ? ", " + gb_per_s(time, kernel) + " GB/s" : "", launch, kernel + launch,
      launch > kernel ? "; the launch is the longer part" : "");
  constexpr const char* kRow =
      "{:>5} {:<14} {:<18} {:>10} {:>9} {:<8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>11}\n";
  text += fmt::format(kRow, "", "file", "op", "begin us", "us", "bound by", "memory", "matrix", "vector",
                      "LX", "ring", "read", "written");
  const Json& executes = time["executes"];
  for (size_t i = 0; i < std::min(executes.size(), kMostLines); ++i) {
    const Json& e = executes[i];
    const auto us = [&](const char* what) { return fmt::format("{:.2f}", e[what].get<double>()); };
    const double begin = e["begin_us"], took = e["end_us"].get<double>() - begin;
    text += fmt::format(kRow, i, e["file"].get<std::string>(), e["op"].get<std::string>(), us("begin_us"),
                        fmt::format("{:.2f}", took), e["bound_by"].get<std::string>(), us("memory_us"),
                        us("matrix_us"), us("vector_us"), us("lx_us"), us("ring_us"),
                        e["read"].get<int64_t>(), e["written"].get<int64_t>());
  }
  if (executes.size() > kMostLines) {
    text += fmt::format("... and {} more, with --json\n", executes.size() - kMostLines);
  }
  return text;
}

}  // namespace spyre::tools
