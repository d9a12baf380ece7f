// spyre-plan: reads a graph (.ir) and explains its scratchpad plan: which buffers live in LX, where, why the
// others do not and what that costs. As text, as JSON, as a page, or compared with another plan.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>

#include "spyre/base/json.h"
#include "spyre/device/timing/program_facts.h"
#include "spyre/device/timing/simulate.h"
#include "spyre/driver/explain.h"
#include "spyre/program/read_program.h"
#include "spyre/report/plan_comparison.h"
#include "spyre/report/plan_facts.h"
#include "spyre/report/plan_page.h"
#include "spyre/report/plan_text.h"
#include "spyre/report/time_page.h"
#include "spyre/solve/solver.h"
#include "tools/exit_code.h"
#include "tools/objective_option.h"
#include "tools/terminal_progress.h"
#include "tools/time_report.h"

namespace {

using namespace spyre;

struct Command {
  std::string input, html, compare, machine, report;
  bool json = false, alternatives = false, no_in_place = false, no_clones = false, no_evictions = false,
       no_reorder = false, time = false, all_lx = true, all_cores = true;
  CompileOptions options;
  std::optional<CardModel> card;  // to time on
};

// The programs of a bundle, in the order they run: its own, or those of its parts.
Result<std::vector<program::DeviceProgram>> programs_of(const Bundle& bundle, const Machine& machine) {
  std::vector<program::DeviceProgram> programs;
  if (bundle.files.contains("bundle.mlir")) {
    SPYRE_ASSIGN_OR_RETURN(program::DeviceProgram program, program::read_program(bundle.files, machine));
    programs.push_back(std::move(program));
    return programs;
  }
  for (int part = 0;; ++part) {
    const std::string folder = fmt::format("bundle_{}/", part);
    program::ProgramFiles files;
    for (const auto& [name, text] : bundle.files) {
      if (name.starts_with(folder)) files[name.substr(folder.size())] = text;
    }
    if (files.empty()) return programs;
    SPYRE_ASSIGN_OR_RETURN(program::DeviceProgram program, program::read_program(files, machine));
    programs.push_back(std::move(program));
  }
}

// What a launch of the kernel would take, before anything runs: every open size at its largest.
Result<Json> time_of(const CompiledGraph& compiled, const CardModel& card) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<program::DeviceProgram> programs,
                         programs_of(compiled.bundle, card.machine));
  std::vector<tools::TimedProgram> timed;
  for (const program::DeviceProgram& program : programs) {
    SPYRE_ASSIGN_OR_RETURN(timing::Timeline timeline,
                           timing::simulate(program, timing::largest_extents(program), card.machine,
                                            card.rates, timing::Detail::kExecutes));
    timed.push_back({&program, std::move(timeline)});
  }
  return tools::time_json(timed, card);
}

// The page of what a launch would take (spyre-run --report makes the same of a bundle).
Status write_report(const CompiledGraph& compiled, const std::string& name, const CardModel& card,
                    const std::string& file) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<program::DeviceProgram> programs,
                         programs_of(compiled.bundle, card.machine));
  std::vector<timing::LaunchedProgram> launched;
  for (size_t part = 0; part < programs.size(); ++part) {
    const std::string folder =
        compiled.bundle.files.contains("bundle.mlir") ? "" : fmt::format("bundle_{}/", part);
    timing::LaunchedProgram program;
    program.program = &programs[part];
    program.launch = timing::largest_extents(programs[part]);
    for (const program::ProgramOp& op : programs[part].ops) {
      const auto text = compiled.bundle.files.find(folder + op.file);
      if (text != compiled.bundle.files.end()) program.origins[op.file] = program::origin_in(text->second);
    }
    launched.push_back(std::move(program));
  }
  SPYRE_ASSIGN_OR_RETURN(Json facts, timing::program_facts(name, launched, card, timing::Detail::kCores));
  facts["made"] = {{"by", "spyre-plan"}};
  return write_text(file, report::time_page(facts));
}

// The plan of a graph; with its time on a card, if there is one, and a page of that, if there is a file for it.
Result<Json> explained(const Graph& graph, const CompileOptions& options,
                       const std::optional<CardModel>& card = {}, const std::string& page = {}) {
  PassLog log;
  const tools::TerminalProgress progress(log, graph.name);
  SPYRE_ASSIGN_OR_RETURN(const CompiledGraph compiled, compile(graph, options, log));
  SPYRE_ASSIGN_OR_RETURN(Json plan, explain(compiled));
  if (compiled.joint) plan["joint"] = compiled.joint->to_json();
  if (card) {
    SPYRE_ASSIGN_OR_RETURN(plan["time"], time_of(compiled, *card));
    if (!page.empty()) SPYRE_TRY(write_report(compiled, graph.name, *card, page));
  }
  return plan;
}

// The same graph planned by every solver.
Result<Json> alternatives(const Graph& graph, CompileOptions options) {
  Json rows = Json::array();
  for (const solve::SolverRow& solver : solve::all_solvers()) {
    options.scratchpad.solver = solver.name;
    SPYRE_ASSIGN_OR_RETURN(const Json plan, explained(graph, options));
    rows.push_back({{"solver", plan["solver"]},
                    {"saved", plan["saved"]},
                    {"moved", plan["moved"]},
                    {"us", plan["cost"]["us"]},
                    {"optimal", plan["optimal"]},
                    {"work", plan["work"]}});
  }
  return rows;
}

// A plan from a file: one that was saved (.json), or that of a graph under the same options.
Result<Json> plan_of_file(const std::string& path, const Command& command, const std::string& page = {}) {
  if (path.ends_with(".json")) {
    SPYRE_ASSIGN_OR_RETURN(Json plan, read_json(path));
    SPYRE_TRY(report::check_plan(plan, path));
    return plan;
  }
  SPYRE_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  SPYRE_ASSIGN_OR_RETURN(const Graph graph, parse_graph(text, path));
  return explained(graph, command.options, command.card, page);
}

int run(Command command) {
  command.options.lx_planning = true;
  lx::MoveSet& moves = command.options.scratchpad.moves;
  if (command.no_in_place) moves = moves.without({lx::Move::kTakeOverSlot});
  if (command.no_evictions) moves = moves.without({lx::Move::kEvict});
  if (command.no_clones) moves = moves.without({lx::Move::kCopyIn});
  if (command.no_reorder) command.options.reorder = false;
  if (command.time || !command.machine.empty() || !command.report.empty()) {
    const Result<CardModel> card = tools::card_model_of(command.machine);
    if (!card.ok()) return tools::report(card.error(), tools::kBadUsage);
    command.card = card.value();
    command.options.machine = command.card->machine;
    if (command.all_cores) command.options.cores = command.card->machine.cores;
    // Of more LX the plan has more, of less it has less, unless the command line says how much.
    if (command.all_lx) {
      Bytes& capacity = command.options.scratchpad.capacity;
      capacity = std::max(capacity + command.card->machine.lx_per_core - spyre_card().lx_per_core, Bytes(0));
    }
    if (command.input.ends_with(".json"))
      return tools::report(
          Error(ErrorKind::kInvalidArgument, "--time compiles: it needs a graph, found " + command.input),
          tools::kBadUsage);
  }
  Result<Json> made = plan_of_file(command.input, command, command.report);
  if (!made.ok()) return tools::report(made.error(), tools::kBadArtifact);
  Json plan = std::move(made).value();
  if (command.alternatives) {
    if (command.input.ends_with(".json"))
      return tools::report(Error(ErrorKind::kInvalidArgument,
                                 "--alternatives plans again: it needs a graph, found " + command.input),
                           tools::kBadUsage);
    const Result<std::string> text = read_text(command.input);
    if (!text.ok()) return tools::report(text.error(), tools::kBadUsage);
    const Result<Graph> graph = parse_graph(text.value(), command.input);
    if (!graph.ok()) return tools::report(graph.error(), tools::kBadUsage);
    Result<Json> rows = alternatives(graph.value(), command.options);
    if (!rows.ok()) return tools::report(rows.error(), tools::kBadArtifact);
    plan["alternatives"] = std::move(rows).value();
  }
  if (!command.html.empty()) {
    const Status written = write_text(command.html, report::plan_page(plan));
    if (!written.ok()) return tools::report(written.error(), tools::kBadUsage);
  }
  if (!command.compare.empty()) {
    const Result<Json> other = plan_of_file(command.compare, command);
    if (!other.ok()) return tools::report(other.error(), tools::kBadArtifact);
    const Json comparison = report::compare_plans(plan, other.value());
    fmt::print("{}", command.json ? comparison.dump(2) + "\n" : report::comparison_text(comparison));
  } else if (command.json) {
    fmt::print("{}\n", plan.dump(2));
  } else if (command.html.empty()) {
    fmt::print("{}", report::plan_text(plan));
    if (plan.contains("time")) fmt::print("\n{}", tools::time_text(plan["time"]));
  }
  return tools::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Explains the scratchpad plan of a graph (.ir), or one that was saved (.json). Exit codes: 0 done, 1 "
      "command "
      "line or files, 2 the graph or the saved plan is refused, 4 bug.",
      "spyre-plan");
  Command command;
  const Result<CompileOptions> environment = CompileOptions::from_environment();
  if (!environment.ok()) return tools::report(environment.error(), tools::kBadUsage);
  command.options = environment.value();
  std::vector<std::string> solvers;
  for (const solve::SolverRow& row : solve::all_solvers()) solvers.emplace_back(row.name);
  int64_t capacity = command.options.scratchpad.capacity.count();
  app.add_option("graph", command.input, "Graph in text form, or a plan that --json printed")
      ->required()
      ->check(CLI::ExistingFile);
  const CLI::Option* given_cores =
      app.add_option("--cores", command.options.cores, "Cores that work is divided over (SENCORES)")
          ->check(CLI::Range(1, 32));
  tools::add_objective(app, command.options.objective);
  app.add_option("-s,--solver", command.options.scratchpad.solver, "Which solver (LAYOUT_SOLVER)")
      ->check(CLI::IsMember(solvers));
  const CLI::Option* given_capacity =
      app.add_option("--capacity", capacity, "Bytes of LX to plan (DXP_LX_FRAC_AVAIL)")
          ->check(CLI::Range(0, 2 << 20));
  app.add_flag("--no-in-place", command.no_in_place, "No result takes over the slot of an operand");
  app.add_flag("--no-clones", command.no_clones, "No copies of inputs in LX");
  app.add_flag("--no-evictions", command.no_evictions, "No buffer leaves LX in an idle gap");
  app.add_flag("--no-reorder", command.no_reorder, "Nodes run in the order of the graph");
  app.add_flag("--json", command.json, "Print JSON");
  app.add_option("--html", command.html, "Write a self-contained page with the map of LX");
  app.add_option("--compare", command.compare,
                 "Print what differs in another graph's plan, or in a saved one")
      ->check(CLI::ExistingFile);
  app.add_flag("--time", command.time, "Say how long the kernel would take, and what bounds each execute");
  app.add_option(
         "--machine", command.machine,
         "JSON file with the machine to plan for and to time on (spyre/cost/card_model.h); implies --time")
      ->check(CLI::ExistingFile);
  app.add_option("--report", command.report,
                 "Write a self-contained page about that time: every core, LX, traffic, what would help; "
                 "implies --time");
  app.add_flag("--alternatives", command.alternatives, "Plan with every solver and show what each saves");
  CLI11_PARSE(app, argc, argv);
  command.options.scratchpad.capacity = Bytes(capacity);
  command.all_cores = given_cores->count() == 0;
  command.all_lx = given_capacity->count() == 0;
  return tools::guarded_main([&] { return run(std::move(command)); });
}
