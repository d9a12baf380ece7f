// spyre-opt: reads a graph (.ir), runs the passes up to a named one, or one alone, and prints the graph.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "spyre/base/json.h"
#include "spyre/driver/pass.h"
#include "spyre/graph/normal_op.h"
#include "tools/exit_code.h"
#include "tools/objective_option.h"

namespace {

using namespace spyre;

// Whether the card runs each node with the layouts that the text gives. Passes ask this of layouts they think of; here
// the writer of the text chooses.
Status check_layouts(const DeviceGraph& graph) {
  for (const DeviceNode& node : graph.nodes) {
    std::vector<const DeviceLayout*> layouts;
    for_each_access(node.op, [&](const Access& access) {
      const auto& layout = graph.buffers[static_cast<size_t>(access.buffer)].layout;
      layouts.push_back(layout ? &*layout : nullptr);
    });
    const Result<NormalOp> normal = normalize_op(graph, node, layouts);
    if (!normal.ok()) {
      return Error(normal.error().kind, fmt::format("node '{}' ({}): {}", node.name, to_string(node.op.op),
                                                    normal.error().message));
    }
  }
  return Status();
}

int check(const std::string& input) {
  const Result<std::string> text = read_text(input);
  if (!text.ok()) return tools::report(text.error(), tools::kBadUsage);
  const Result<DeviceGraph> graph = parse_device_graph(text.value(), input);
  if (!graph.ok()) return tools::report(graph.error(), tools::kBadArtifact);
  const Status legal = check_layouts(graph.value());
  return legal.ok() ? tools::kDone : tools::report(legal.error(), tools::kBadArtifact);
}

struct Command {
  std::string input;
  std::string until;  // the last pass that runs; empty: all
  std::string alone;  // the only pass that runs
  CompileOptions options;
};

std::string pass_list() {
  std::string text = "Passes, in the order they run:\n";
  for (const Pass& pass : passes()) text += fmt::format("  {:<22}{}\n", pass.name, pass.summary);
  return text;
}

int run_alone(const Pass& pass, std::string_view text, const Command& command) {
  Result<AnyGraph> graph = parse_for(pass, text, command.input);
  if (!graph.ok()) return tools::report(graph.error(), tools::kBadArtifact);
  const Status done = run_pass(pass, graph.value(), command.options);
  if (!done.ok()) return tools::report(done.error(), tools::kBadArtifact);
  fmt::print("{}", to_text(graph.value()));
  return tools::kDone;
}

int run_until(std::string_view last, Graph graph, const CompileOptions& options) {
  std::string printed;
  bool reached = false;
  PassLog log([&](std::string_view name, const AnyGraph& after, bool) {
    if (reached) return;
    printed = to_text(after);
    reached = name == last;
  });
  const Result<CompiledGraph> compiled = compile(std::move(graph), options, log);
  // What comes after the pass asked for does not matter here.
  if (!compiled.ok() && !reached) return tools::report(compiled.error(), tools::kBadArtifact);
  if (!last.empty() && !reached) {
    return tools::report(
        Error(ErrorKind::kInvalidArgument, fmt::format("'{}' does not run under these settings", last)),
        tools::kBadUsage);
  }
  fmt::print("{}", printed);
  return tools::kDone;
}

int run(const Command& command) {
  const std::string& name = command.alone.empty() ? command.until : command.alone;
  const Pass* pass = find_pass(name);
  if (!name.empty() && pass == nullptr) {
    std::string names;
    for (const Pass& known : passes()) names += fmt::format(" {}", known.name);
    return tools::report(Error(ErrorKind::kInvalidArgument,
                               fmt::format("there is no pass '{}'; the passes are{}", name, names)),
                         tools::kBadUsage);
  }
  const Result<std::string> text = read_text(command.input);
  if (!text.ok()) return tools::report(text.error(), tools::kBadUsage);
  if (!command.alone.empty()) return run_alone(*pass, text.value(), command);
  Result<Graph> graph = parse_graph(text.value(), command.input);
  if (!graph.ok()) return tools::report(graph.error(), tools::kBadArtifact);
  return run_until(command.until, std::move(graph).value(), command.options);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Runs the compiler's passes on a graph (.ir) and prints it. Exit codes: 0 done, 1 command line or "
      "files, 2 the graph is refused, 4 bug.",
      "spyre-opt");
  const Result<CompileOptions> environment = CompileOptions::from_environment();
  if (!environment.ok()) return tools::report(environment.error(), tools::kBadUsage);
  Command command{.options = environment.value()};
  app.add_option("graph", command.input, "Graph in text form")->required()->check(CLI::ExistingFile);
  CLI::Option* until =
      app.add_option("--until", command.until, "Stop after this pass; the last one by default");
  app.add_option("--pass", command.alone,
                 "Run this pass alone; the text carries what those before it decided")
      ->excludes(until);
  app.add_option("--cores", command.options.cores, "Cores that work is divided over (SENCORES)")
      ->check(CLI::Range(1, 32));
  tools::add_objective(app, command.options.objective);
  app.add_option("--bundle-ops", command.options.bundle_ops,
                 "Operations in one bundle, 0: no cut (SPYRE_BUNDLE_OPS)")
      ->check(CLI::NonNegativeNumber);
  bool check_only = false;
  app.add_flag("--check-layouts", check_only,
               "Run no pass; say whether the card runs each node, of one operation, with the layouts given");
  app.footer(pass_list());
  CLI11_PARSE(app, argc, argv);
  return tools::guarded_main([&] { return check_only ? check(command.input) : run(command); });
}
