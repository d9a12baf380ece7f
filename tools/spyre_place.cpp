// spyre-place: reads a placement problem, solves it, checks the answer and prints it.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/solve/bounds.h"
#include "spyre/solve/solver.h"
#include "spyre/solve/text.h"
#include "spyre/solve/validate.h"

namespace {

struct Options {
  std::vector<std::string> inputs;
  std::string solver = "portfolio";
  int64_t budget = spyre::solve::Deadline::kDefaultUnits;
  int64_t capacity = 0;
  int64_t align = spyre::solve::kPlacementAlign.count();
  bool json = false;
};

spyre::Result<spyre::solve::Problem> read_problem(const std::string& input, const Options& options) {
  SPYRE_ASSIGN_OR_RETURN(const std::string text, spyre::read_text(input));
  if (!input.ends_with(".csv")) return spyre::solve::parse_problem(text, input);
  return spyre::solve::parse_allocation_csv(text, input, spyre::Bytes(options.capacity),
                                            spyre::Bytes(options.align));
}

std::string to_json(const spyre::solve::Problem& problem, const spyre::solve::Solution& solution) {
  spyre::Json offsets = spyre::Json::object();
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const auto& offset = solution.placement.offset[i];
    offsets[problem.buffers[i].name] = offset.has_value() ? spyre::Json(offset->count()) : spyre::Json();
  }
  const spyre::Json out = {{"offsets", offsets},
                           {"saved", spyre::solve::bytes_saved(problem, solution.placement).count()},
                           {"at_stake", spyre::solve::bytes_at_stake(problem).count()},
                           {"optimal", solution.optimal},
                           {"work", solution.work}};
  return out.dump() + "\n";
}

std::string to_text(const spyre::solve::Problem& problem, const spyre::solve::Solution& solution) {
  const spyre::Bytes off_chip =
      spyre::solve::bytes_at_stake(problem) - spyre::solve::bytes_saved(problem, solution.placement);
  return spyre::solve::print_placement(problem, solution.placement) +
         fmt::format("off-chip traffic {} B ({}), at least {} B; work {}\n", off_chip.count(),
                     solution.optimal ? "proven least" : "not proven least",
                     spyre::solve::unavoidable_off_chip(problem).count(), solution.work);
}

spyre::Status run(const std::string& input, const Options& options) {
  SPYRE_ASSIGN_OR_RETURN(const spyre::solve::Problem problem, read_problem(input, options));
  SPYRE_ASSIGN_OR_RETURN(
      const spyre::solve::Solution solution,
      spyre::solve::place(problem, options.solver, spyre::solve::Deadline(options.budget)));
  SPYRE_TRY(spyre::solve::validate(problem, solution.placement));
  const std::string out = options.json ? to_json(problem, solution) : to_text(problem, solution);
  std::fputs(out.c_str(), stdout);
  return spyre::Status();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Places buffers in LX: problem text or CSV in, one line per buffer out.", "spyre-place");
  Options options;
  app.add_option("problems", options.inputs, "Problems in text form, or CSV with id,lower,upper,size")
      ->required()
      ->check(CLI::ExistingFile);
  std::vector<std::string> names;
  for (const spyre::solve::SolverRow& row : spyre::solve::all_solvers()) names.emplace_back(row.name);
  app.add_option("-s,--solver", options.solver, "Which solver")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("-b,--budget", options.budget, "Work units it may spend")->capture_default_str();
  app.add_option("--capacity", options.capacity, "Bytes of LX, for CSV");
  app.add_option("--align", options.align, "Alignment of every buffer, for CSV")->capture_default_str();
  app.add_flag("--json", options.json, "One line of JSON per problem");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& input : options.inputs) {
    if (const spyre::Status status = run(input, options); !status.ok()) {
      std::fprintf(stderr, "error: %s\n", status.error().to_string().c_str());
      return 1;
    }
  }
  return 0;
}
