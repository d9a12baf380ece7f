// spyre-plan: reads a graph (.ir) and shows which of its buffers live in LX, where, and why the others do
// not.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "spyre/base/json.h"
#include "spyre/driver/compile.h"
#include "spyre/solve/solver.h"
#include "tools/exit_code.h"

namespace {

using namespace spyre;

struct Command {
  std::string input;
  bool json = false, no_in_place = false, no_clones = false;
  CompileOptions options;
};

int run(Command command) {
  const Result<std::string> text = read_text(command.input);
  if (!text.ok()) return tools::report(text.error(), tools::kBadUsage);
  Result<Graph> graph = parse_graph(text.value(), command.input);
  if (!graph.ok()) return tools::report(graph.error(), tools::kBadArtifact);
  command.options.lx_planning = true;
  command.options.scratchpad.in_place = !command.no_in_place;
  command.options.scratchpad.clone_inputs = !command.no_clones;
  const Result<CompiledGraph> compiled = compile(std::move(graph).value(), command.options);
  if (!compiled.ok()) return tools::report(compiled.error(), tools::kBadArtifact);
  const ScratchpadPlan& plan = compiled.value().scratchpad;
  const std::optional<CoOptimizeReport>& joint = compiled.value().joint;
  if (command.json) {
    Json json = plan.to_json();
    if (joint) json["joint"] = joint->to_json();
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}{}", plan.to_text(), joint ? joint->to_text() : "");
  }
  return tools::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Plans the scratchpads of a graph (.ir). Exit codes: 0 done, 1 command line or files, 2 the graph is "
      "refused, 4 bug.",
      "spyre-plan");
  Command command;
  const Result<CompileOptions> environment = CompileOptions::from_environment();
  if (!environment.ok()) return tools::report(environment.error(), tools::kBadUsage);
  command.options = environment.value();
  std::vector<std::string> solvers;
  for (const solve::SolverRow& row : solve::all_solvers()) solvers.emplace_back(row.name);
  int64_t capacity = command.options.scratchpad.capacity.count();
  app.add_option("graph", command.input, "Graph in text form")->required()->check(CLI::ExistingFile);
  app.add_option("--cores", command.options.cores, "Cores that work is divided over (SENCORES)")
      ->check(CLI::Range(1, 32));
  app.add_option("-s,--solver", command.options.scratchpad.solver, "Which solver (LAYOUT_SOLVER)")
      ->check(CLI::IsMember(solvers));
  app.add_option("--capacity", capacity, "Bytes of LX to plan (DXP_LX_FRAC_AVAIL)")
      ->check(CLI::Range(0, 2 << 20));
  app.add_flag("--no-in-place", command.no_in_place, "No result takes over the slot of an operand");
  app.add_flag("--no-clones", command.no_clones, "No copies of inputs in LX");
  app.add_flag("--json", command.json, "Print JSON");
  CLI11_PARSE(app, argc, argv);
  command.options.scratchpad.capacity = Bytes(capacity);
  return tools::guarded_main([&] { return run(std::move(command)); });
}
