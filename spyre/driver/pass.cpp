#include "spyre/driver/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spyre/graph/device_op.h"

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
  for (const Node& node : graph.nodes) {
    if (node.call) {
      if (fact == Fact::kLoops || fact == Fact::kDeviceOps)
        return fmt::format("node '{}' is a call", node.name);
      continue;
    }
    if (fact == Fact::kDeviceOps && !is_device_op(node))
      return fmt::format("node '{}' has more than one operation", node.name);
    if (fact != Fact::kLayouts) continue;
    const auto bare = [&](BufferId id) { return !graph.buffers[static_cast<size_t>(id)].layout; };
    const auto load =
        std::ranges::find_if(node.body, [&](const Instruction& i) { return i.is_load() && bare(i.buffer); });
    if (load == node.body.end() && !bare(node.target)) continue;
    const BufferId id = load == node.body.end() ? node.target : load->buffer;
    return fmt::format("buffer '{}' has none", graph.buffers[static_cast<size_t>(id)].name);
  }
  return "";
}

}  // namespace

std::string_view to_string(Fact fact) {
  switch (fact) {
    case Fact::kLoops:
      return "every node is a loop nest";
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

Status check_ready(const Pass& pass, const Graph& graph) {
  for (const Fact fact : pass.needs) {
    const std::string missing = lacks(fact, graph);
    if (missing.empty()) continue;
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("graph '{}' is not ready for '{}', which needs that {}: {}", graph.name,
                             pass.name, to_string(fact), missing))
        .note(given_by(fact, passes()));
  }
  return Status();
}

Status run_pass(const Pass& pass, Graph& graph, const CompileOptions& options) {
  SPYRE_TRY(check_sizes(graph));
  SPYRE_TRY(check_ready(pass, graph));
  PassLog log;
  CompiledGraph found;
  PassContext context(options, log, found);
  return log.run(pass.name, graph, [&](Graph& g) { return pass.run(g, context); });
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
