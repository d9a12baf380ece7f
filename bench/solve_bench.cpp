// How fast buffers are placed, and how good the placements are.
//
//   solve_bench [--rounds 3] [--largest 10000] [--budget 4000000000] [--corpus tests/corpus/placement]
//
// Every placement is judged by the validator before a number is printed.
//
//   public instances    every buffer fits in the file's capacity; time to find out how, within the budget
//   scaling             random problems whose capacity is 60 % of the peak of live bytes, so that not
//   everything fits
//
//   saved      off-chip traffic avoided, in percent of all traffic at stake
//   gap        what the bound allows above that: no solver can gain more
//   time       median of the rounds, in milliseconds; +- half the range
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "spyre/base/json.h"
#include "spyre/solve/bounds.h"
#include "spyre/solve/generate.h"
#include "spyre/solve/solver.h"
#include "spyre/solve/text.h"
#include "spyre/solve/validate.h"

namespace spyre::solve {
namespace {

struct Timed {
  Solution solution;
  double median_ms, half_range_ms;
};

Timed time_solver(const Problem& problem, std::string_view solver, int rounds,
                  Deadline deadline = Deadline()) {
  Timed timed;
  std::vector<double> ms;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    timed.solution = place(problem, solver, deadline).value();
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  const Status verdict = validate(problem, timed.solution.placement);
  SPYRE_CHECK(verdict.ok(), "a benchmarked placement is legal");
  std::sort(ms.begin(), ms.end());
  timed.median_ms = ms[ms.size() / 2];
  timed.half_range_ms = (ms.back() - ms.front()) / 2;
  return timed;
}

void public_instances(const std::string& folder, int rounds, Deadline deadline) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  fmt::print("{:<18} {:>7} {:>10} {:>22}\n", "public instance", "buffers", "placed", "time (ms)");
  for (const auto& path : paths) {
    const Bytes capacity(std::stoll(path.stem().extension().string().substr(1)));
    const Problem problem =
        parse_allocation_csv(read_text(path).value(), path.string(), capacity, Bytes(1)).value();
    const Timed timed = time_solver(problem, "portfolio", rounds, deadline);
    const auto& offsets = timed.solution.placement.offset;
    const auto placed =
        std::count_if(offsets.begin(), offsets.end(), [](const auto& o) { return o.has_value(); });
    fmt::print("{:<18} {:>7} {:>10} {:>12.1f} +- {:>6.1f}\n", path.filename().string(),
               problem.buffers.size(), placed, timed.median_ms, timed.half_range_ms);
    std::fflush(stdout);
  }
}

void scaling(int largest, int rounds) {
  fmt::print("\n{:>7} {:<20} {:>8} {:>8} {:>7} {:>22}\n", "buffers", "solver", "saved", "gap", "proven",
             "time (ms)");
  for (int n = 10; n <= largest; n *= 10) {
    const Problem problem = generate_problem({.buffers = n,
                                              .steps = std::max(8, n / 2),
                                              .longest_life = 12,
                                              .most_units = 2000,
                                              .in_place = 0.3,
                                              .capacity_to_peak = 0.6},
                                             1);
    const double stake = double(bytes_at_stake(problem).count());
    const double bound = 100 * (1 - double(unavoidable_off_chip(problem).count()) / stake);
    for (const SolverRow& row : all_solvers()) {
      const Timed timed = time_solver(problem, row.name, rounds);
      const double saved = 100 * double(bytes_saved(problem, timed.solution.placement).count()) / stake;
      fmt::print("{:>7} {:<20} {:>7.2f}% {:>7.2f}% {:>7} {:>12.1f} +- {:>6.1f}\n", n, row.name, saved,
                 bound - saved, timed.solution.optimal ? "yes" : "no", timed.median_ms, timed.half_range_ms);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace spyre::solve

int main(int argc, char** argv) {
  CLI::App app("How fast buffers are placed, and how good the placements are.", "solve_bench");
  int rounds = 3, largest = 10'000;
  int64_t budget = 4'000'000'000;
  std::string corpus = "tests/corpus/placement";
  app.add_option("--rounds", rounds, "Runs of each case")->capture_default_str();
  app.add_option("--largest", largest, "Most buffers of the scaling table")->capture_default_str();
  app.add_option("--budget", budget, "Work units for a public instance")->capture_default_str();
  app.add_option("--corpus", corpus, "Folder with the public instances")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  spyre::solve::public_instances(corpus + "/minimalloc", rounds, spyre::solve::Deadline(budget));
  spyre::solve::scaling(largest, rounds);
  return 0;
}
