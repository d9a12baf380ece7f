// spyre-opt: reads a graph (.ir), runs the passes up to a named one, prints the graph.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "spyre/base/json.h"
#include "spyre/driver/compile.h"
#include "spyre/graph/normal_op.h"
#include "tools/exit_code.h"

namespace {

using namespace spyre;

// Whether the card runs each node with the layouts that the text gives. Passes ask this of layouts they think of; here
// the writer of the text chooses.
Status check_layouts(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const auto operations = std::count_if(node.body.begin(), node.body.end(),
                                          [](const Instruction& step) { return !step.is_load(); });
    if (operations > 1) {
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("node '{}' has {} operations, one is allowed here", node.name, operations))
          .try_instead("--until select-ops first");
    }
    const DeviceOp op = device_op(node);
    std::vector<const DeviceLayout*> layouts;
    const auto add = [&](const Access& access) {
      const auto& layout = graph.buffers[static_cast<size_t>(access.buffer)].layout;
      layouts.push_back(layout ? &*layout : nullptr);
    };
    for (const auto& [name, access] : op.indices) add(access);
    for (const Access& access : op.inputs) add(access);
    add(op.output);
    const Result<NormalOp> normal = normalize_op(graph, node, layouts);
    if (!normal.ok()) {
      return Error(normal.error().kind,
                   fmt::format("node '{}' ({}): {}", node.name, op.op, normal.error().message));
    }
  }
  return Status();
}

int check(const std::string& input) {
  const Result<std::string> text = read_text(input);
  if (!text.ok()) return tools::report(text.error(), tools::kBadUsage);
  const Result<Graph> graph = parse_graph(text.value(), input);
  if (!graph.ok()) return tools::report(graph.error(), tools::kBadArtifact);
  const Status legal = check_layouts(graph.value());
  return legal.ok() ? tools::kDone : tools::report(legal.error(), tools::kBadArtifact);
}

int run(const std::string& input, const std::string& pass, const CompileOptions& options) {
  const Result<std::string> text = read_text(input);
  if (!text.ok()) return tools::report(text.error(), tools::kBadUsage);
  Result<Graph> graph = parse_graph(text.value(), input);
  if (!graph.ok()) return tools::report(graph.error(), tools::kBadArtifact);
  std::string printed;
  bool reached = false;
  PassLog log([&](std::string_view name, const Graph& after, bool) {
    if (reached) return;
    printed = to_text(after);
    reached = name == pass;
  });
  const Result<CompiledGraph> compiled = compile(std::move(graph).value(), options, log);
  // What comes after the pass asked for does not matter here.
  if (!compiled.ok() && !reached) return tools::report(compiled.error(), tools::kBadArtifact);
  if (!pass.empty() && !reached) {
    std::string names;
    for (const PassLog::Entry& entry : log.entries()) names += " " + entry.pass;
    return tools::report(Error(ErrorKind::kInvalidArgument,
                               fmt::format("there is no pass '{}'; the passes are{}", pass, names)),
                         tools::kBadUsage);
  }
  fmt::print("{}", printed);
  return tools::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Runs the compiler's passes on a graph (.ir) and prints it. Exit codes: 0 done, 1 command line or "
      "files, 2 the graph is refused, 4 bug.",
      "spyre-opt");
  const Result<CompileOptions> environment = CompileOptions::from_environment();
  if (!environment.ok()) return tools::report(environment.error(), tools::kBadUsage);
  CompileOptions options = environment.value();
  std::string input, pass;
  bool check_only = false;
  app.add_option("graph", input, "Graph in text form")->required()->check(CLI::ExistingFile);
  app.add_option("--until", pass, "Stop after this pass; the last one by default");
  app.add_option("--cores", options.cores, "Cores that work is divided over (SENCORES)")
      ->check(CLI::Range(1, 32));
  app.add_flag("--check-layouts", check_only,
               "Run no pass; say whether the card runs each node, of one operation, with the layouts given");
  CLI11_PARSE(app, argc, argv);
  return tools::guarded_main([&] { return check_only ? check(input) : run(input, pass, options); });
}
