// Two judges of one another: the planner's closed form of a whole graph, and the event model that plays its
// artifact through.
//
//   timing_bench [--corpus tests/corpus/layers]
//
// One line for each graph, planned 18 ways (LX off, apart, jointly for traffic and for time, in any order of sums, over 8, 16
// and 32 cores):
//
//   plans        that compile
//   simulated    kernel of the plan that users get, us
//   estimated    the same by the closed form that planning for time minimises (lx/kernel_time.h)
//   error %      root mean square of estimated / simulated - 1, over the plans
//   rank         Spearman's correlation of both over the plans
//   timed ms     the event model itself took, for the plan that users get
//
// Then one line for each family of operations: all executes of those plans on their own, by the bundle formula
// (streaming and arithmetic, the longer counts), against what they take alone and in their window.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>

#include "spyre/base/json.h"
#include "spyre/cost/bundle.h"
#include "spyre/cost/test_agreement.h"
#include "spyre/device/timing/simulate.h"
#include "spyre/driver/compile.h"
#include "spyre/lx/kernel_time.h"
#include "spyre/program/read_program.h"

namespace spyre {
namespace {

using Clock = std::chrono::steady_clock;

struct Plan {
  double simulated = 0, estimated = 0, timed_ms = 0;
};

struct Family {
  int64_t executes = 0;
  double window = 0;
  std::vector<double> alone, estimated;
};

double longest(const timing::ExecuteTime& time) {
  return std::max({time.memory.us(), time.matrix.us(), time.vector.us(), time.lx.us()}) + time.ring.us();
}

/// What the bundle formula says of an execute that is a bundle of its own.
double formula_us(const timing::ExecuteTime& time) {
  const BundleWork work = {.compute = time.matrix,
                           .memory = streaming_time({time.read, time.written}, fitted_rates()),
                           .efficiency = 1,
                           .spill = 1,
                           .reread = {},
                           .relayout = time.ring};
  return kernel_time(work, fitted_rates()).us();
}

std::optional<Plan> plan_of(const Graph& graph, const CompileOptions& options,
                            std::map<std::string, Family>& families) {
  const auto compiled = compile(graph, options);
  if (!compiled.ok()) return std::nullopt;
  const auto program = program::read_program(compiled.value().bundle.files);
  const auto closed = lx::kernel_time(compiled.value().graph);
  if (!program.ok() || !closed.ok()) return std::nullopt;
  const auto start = Clock::now();
  const auto timeline = timing::simulate(program.value(), timing::largest_extents(program.value()),
                                         spyre_card(), fitted_rates(), timing::Detail::kExecutes);
  if (!timeline.ok()) return std::nullopt;
  for (const timing::ExecuteTime& time : timeline.value().executes) {
    const auto& op = program.value().ops[static_cast<size_t>(time.op)];
    Family& family = families[std::string(to_string(op.info->family))];
    ++family.executes;
    family.window += (time.end - time.begin).us();
    if (longest(time) == 0) continue;
    family.alone.push_back(longest(time));
    family.estimated.push_back(formula_us(time));
  }
  return Plan{timeline.value().kernel.us(), closed.value().us(),
              std::chrono::duration<double, std::milli>(Clock::now() - start).count()};
}

/// The plan that users get, first, and others.
std::vector<CompileOptions> ways() {
  std::vector<CompileOptions> options = {{}};
  for (const int64_t cores : {32, 16, 8}) {
    options.push_back({.cores = cores, .lx_planning = false});
    options.push_back({.cores = cores, .co_optimize = false});
    options.push_back({.cores = cores, .keep_sums = false});
    options.push_back({.cores = cores, .objective = lx::Objective::kTime});
    options.push_back({.cores = cores, .objective = lx::Objective::kTime, .keep_sums = false});
    if (cores != 32) options.push_back({.cores = cores});
  }
  return options;
}

void graph_line(const std::filesystem::path& path, std::map<std::string, Family>& families) {
  const Graph graph = parse_graph(read_text(path).value(), path.string()).value();
  std::vector<Plan> plans;
  for (const CompileOptions& options : ways()) {
    if (const std::optional<Plan> plan = plan_of(graph, options, families)) plans.push_back(*plan);
  }
  std::vector<double> simulated, estimated;
  for (const Plan& plan : plans) {
    simulated.push_back(plan.simulated);
    estimated.push_back(plan.estimated);
  }
  const Agreement found = agreement(estimated, simulated);
  fmt::print("{:<16} {:>6} {:>11.1f} {:>11.1f} {:>8.1f} {:>7.3f} {:>9.2f}\n", path.stem().string(),
             plans.size(), plans.front().simulated, plans.front().estimated, 100 * found.rms_error,
             found.rank_correlation, plans.front().timed_ms);
}

void family_line(const std::string& name, const Family& family) {
  double alone = 0, estimated = 0;
  for (const double us : family.alone) alone += us;
  for (const double us : family.estimated) estimated += us;
  fmt::print("  {:<14} {:>9} {:>12.1f} {:>12.1f} {:>12.1f} {:>8.1f} {:>7.3f}\n", name, family.executes,
             family.window, alone, estimated, alone > 0 ? 100 * (estimated / alone - 1) : 0.0,
             agreement(family.estimated, family.alone).rank_correlation);
}

int run(const std::string& corpus) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    if (entry.path().extension() == ".ir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::map<std::string, Family> families;
  fmt::print("{:<16} {:>6} {:>11} {:>11} {:>8} {:>7} {:>9}\n", "graph, us", "plans", "simulated", "estimated",
             "error %", "rank", "timed ms");
  for (const auto& path : paths) graph_line(path, families);
  fmt::print("\n{:<16} {:>9} {:>12} {:>12} {:>12} {:>8} {:>7}\n", "family, us", "executes", "windows",
             "alone", "formula", "error %", "rank");
  for (const auto& [name, family] : families) family_line(name, family);
  return 0;
}

}  // namespace
}  // namespace spyre

int main(int argc, char** argv) {
  CLI::App app("The planner's closed form against the event model", "timing_bench");
  std::string corpus = "tests/corpus/layers";
  app.add_option("--corpus", corpus, "Folder of graphs")->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  return spyre::run(corpus);
}
