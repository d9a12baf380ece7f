// spyre-compile: reads a graph (.ir) and writes its bundle; spyre-opt's sibling that goes all the way.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/save_bundle.h"
#include "spyre/driver/compile.h"
#include "spyre/opspec/text.h"
#include "tools/exit_code.h"
#include "tools/objective_option.h"
#include "tools/terminal_progress.h"

namespace {

using namespace spyre;

struct Command {
  std::string input, output;
  std::string print_after;  // pass name or "all"
  bool emit_opspec = false;
  bool timing = false;
  bool force = false;
  CompileOptions options;
};

int run(const Command& command) {
  const Result<std::string> text = read_text(command.input);
  if (!text.ok()) return tools::report(text.error(), tools::kBadUsage);
  Result<Graph> graph = parse_graph(text.value(), command.input);
  if (!graph.ok()) return tools::report(graph.error(), tools::kBadArtifact);

  const auto print = [&](std::string_view pass, const AnyGraph& after, bool changed) {
    if (command.print_after != "all" && command.print_after != pass) return;
    if (changed) {
      fmt::print("# after {}\n{}\n", pass, to_text(after));
    } else {
      fmt::print("# after {}: unchanged\n", pass);
    }
  };
  PassLog log = command.print_after.empty() ? PassLog() : PassLog(print);
  const Result<CompiledGraph> compiled = [&] {
    std::optional<tools::TerminalProgress> progress;
    if (command.print_after.empty()) progress.emplace(log, graph.value().name);
    return compile(std::move(graph).value(), command.options, log);
  }();
  if (command.timing) {
    for (const PassLog::Entry& entry : log.entries()) {
      fmt::print(stderr, "{:<22} {:>9.3f} ms\n", entry.pass, static_cast<double>(entry.time.count()) / 1e6);
    }
  }
  if (!compiled.ok()) return tools::report(compiled.error(), tools::kBadArtifact);
  if (command.emit_opspec) fmt::print("{}", to_text(compiled.value().kernel));
  if (command.output.empty()) return tools::kDone;
  const Status saved = save_bundle(compiled.value().bundle, command.output,
                                   command.force ? Overwrite::kForce : Overwrite::kOurs);
  return saved.ok() ? tools::kDone : tools::report(saved.error(), tools::kBadUsage);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Compiles a graph (.ir) for the card. Exit codes: 0 done, 1 command line or files, 2 the graph is "
      "refused, 4 bug.",
      "spyre-compile");
  Command command;
  const Result<CompileOptions> environment = CompileOptions::from_environment();
  if (!environment.ok()) return tools::report(environment.error(), tools::kBadUsage);
  command.options = environment.value();
  app.add_option("graph", command.input, "Graph in text form")->required()->check(CLI::ExistingFile);
  app.add_option("-o,--output", command.output,
                 "Compile directory to write: new, empty, or one written before");
  app.add_flag("--force", command.force,
               "Write into any folder; only files of a bundle are replaced or removed");
  app.add_option("--print-after", command.print_after, "Print the graph after this pass, or after 'all'");
  app.add_flag("--opspec", command.emit_opspec, "Print the kernel in OpSpec text form");
  app.add_flag("--timing", command.timing, "Print the time of each pass on stderr");
  app.add_option("--cores", command.options.cores, "Cores that work is divided over (SENCORES)")
      ->check(CLI::Range(1, 32));
  tools::add_objective(app, command.options.objective);
  CLI11_PARSE(app, argc, argv);
  return tools::guarded_main([&] { return run(command); });
}
