#include "spyre/driver/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace spyre {
namespace {

const Pass* giver_of(Fact fact, std::span<const Pass> among) {
  const auto gives = [&](const Pass& pass) { return std::ranges::count(pass.gives, fact) > 0; };
  const auto pass = std::ranges::find_if(among, gives);
  return pass == among.end() ? nullptr : &*pass;
}

// For messages: "'assign-layouts' gives that".
std::string given_by(Fact fact, std::span<const Pass> among) {
  const Pass* pass = giver_of(fact, among);
  return pass == nullptr ? "no pass gives that" : fmt::format("'{}' gives that", pass->name);
}

// What a graph lacks of a fact; empty: nothing that could be seen.
std::string lacks(Fact fact, const Graph& graph) {
  if (fact == Fact::kDeviceOps) return "it is as captured";
  if (fact != Fact::kLoops) return "";
  const auto node = std::ranges::find_if(graph.nodes, [](const Node& n) { return n.call.has_value(); });
  return node == graph.nodes.end() ? "" : fmt::format("node '{}' is a call", node->name);
}

std::string lacks(Fact fact, const DeviceGraph& graph) {
  if (fact != Fact::kLayouts) return "";
  std::string missing;
  for (const DeviceNode& node : graph.nodes) {
    for_each_access(node.op, [&](const Access& access) {
      const Buffer& buffer = graph.buffers[static_cast<size_t>(access.buffer)];
      if (!buffer.layout && missing.empty()) missing = fmt::format("buffer '{}' has none", buffer.name);
    });
  }
  return missing;
}

const std::string& name_of(const AnyGraph& graph) {
  return std::visit([](const GraphBuffers& kind) -> const std::string& { return kind.name; }, graph);
}

}  // namespace

std::string_view to_string(Fact fact) {
  switch (fact) {
    case Fact::kPartsPlaced:
      return "what is copied into a part of a buffer is that part";
    case Fact::kLoops:
      return "every node is a loop nest";
    case Fact::kFixedLengths:
      return "no loop has an extent that is known at launch only";
    case Fact::kDeviceOps:
      return "every node is one operation of the card";
    case Fact::kWholeSums:
      return "what a product sums over ends with a stick";
    case Fact::kLayouts:
      return "every buffer has a device layout";
    case Fact::kCutLoops:
      return "a loop is one dimension of every operand";
    case Fact::kWholeIndices:
      return "indices end with a stick, or inside their first";
    case Fact::kWithinReach:
      return "no core reaches too far";
    case Fact::kDivisions:
      return "loops are divided over the cores";
    case Fact::kBundles:
      return "nodes are grouped into bundles";
    case Fact::kJoint:
      return "divisions are those that suit the scratchpads best";
    case Fact::kOrder:
      return "nodes are in the order they run in";
    case Fact::kScratchpads:
      return "what stays in LX has its address";
    case Fact::kPlaces:
      return "every local buffer has a place";
  }
  return "unknown";
}

const Pass* find_pass(std::string_view name) {
  const auto pass = std::ranges::find(passes(), name, &Pass::name);
  return pass == passes().end() ? nullptr : &*pass;
}

Status check_order(std::span<const Pass> order) {
  std::set<Fact> standing;
  for (const Pass& pass : order) {
    for (const Fact fact : pass.needs) {
      if (standing.contains(fact)) continue;
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("'{}' comes too early: it needs that {}", pass.name, to_string(fact)))
          .note(given_by(fact, order));
    }
    for (const Fact fact : pass.too_late_after) {
      if (!standing.contains(fact)) continue;
      return Error(ErrorKind::kInvalidArgument,
                   fmt::format("'{}' comes too late: {} already", pass.name, to_string(fact)))
          .note(given_by(fact, order));
    }
    standing.insert(pass.gives.begin(), pass.gives.end());
  }
  return Status();
}

Status check_ready(const Pass& pass, const AnyGraph& graph) {
  for (const Fact fact : pass.needs) {
    const std::string missing = std::visit([&](const auto& kind) { return lacks(fact, kind); }, graph);
    if (missing.empty()) continue;
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("graph '{}' is not ready for '{}', which needs that {}: {}", name_of(graph),
                             pass.name, to_string(fact), missing))
        .note(given_by(fact, passes()));
  }
  if (pass.takes_device_graph() == std::holds_alternative<DeviceGraph>(graph)) return Status();
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("'{}' does not take graph '{}', which is {}", pass.name, name_of(graph),
                           pass.takes_device_graph() ? "as captured" : "a device graph"));
}

Status run_pass(const Pass& pass, AnyGraph& graph, PassContext& context) {
  return context.log.run(pass.name, graph, [&](AnyGraph& g) -> Status {
    if (const auto* run = std::get_if<Pass::OnDevice>(&pass.run))
      return (*run)(std::get<DeviceGraph>(g), context);
    if (const auto* run = std::get_if<Pass::OnCaptured>(&pass.run))
      return (*run)(std::get<Graph>(g), context);
    const auto select = std::get<Pass::Selection>(pass.run);
    SPYRE_ASSIGN_OR_RETURN(g, select(std::move(std::get<Graph>(g)), context));
    return Status();
  });
}

Status run_pass(const Pass& pass, AnyGraph& graph, const CompileOptions& options) {
  SPYRE_TRY(std::visit([](const auto& kind) { return check_sizes(kind); }, graph));
  SPYRE_TRY(check_ready(pass, graph));
  PassLog log;
  CompiledGraph found;
  PassContext context(options, log, found);
  return run_pass(pass, graph, context);
}

Result<AnyGraph> parse_for(const Pass& pass, std::string_view text, std::string_view origin) {
  if (pass.takes_device_graph()) {
    SPYRE_ASSIGN_OR_RETURN(DeviceGraph graph, parse_device_graph(text, origin));
    return AnyGraph(std::move(graph));
  }
  SPYRE_ASSIGN_OR_RETURN(Graph graph, parse_graph(text, origin));
  return AnyGraph(std::move(graph));
}

std::string passes_markdown() {
  std::string out = "| pass | decides | after |\n|---|---|---|\n";
  for (const Pass& pass : passes()) {
    std::string after;
    for (const Fact fact : pass.needs) {
      const Pass* giver = giver_of(fact, passes());
      after += fmt::format("{}`{}`", after.empty() ? "" : ", ", giver->name);
    }
    out += fmt::format("| `{}` | {} | {} |\n", pass.name, pass.summary, after);
  }
  return out;
}

}  // namespace spyre
