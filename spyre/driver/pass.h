#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/driver/compile.h"
#include "spyre/driver/pass_log.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// What passes establish and later ones rely on. The order of the pipeline follows from it: a pass may run where all that
/// it needs stands, and nothing stands yet for which it comes too late.
enum class Fact : uint8_t {
  kPartsPlaced,   ///< what is copied into a part of a buffer is that part
  kLoops,         ///< every node is a loop nest, no call is left
  kFixedLengths,  ///< no loop has an extent that is known at launch only
  kDeviceOps,     ///< every node is one operation of the card
  kWholeSums,     ///< what a product sums over ends with a stick
  kLayouts,       ///< every buffer that a node touches has a device layout
  kCutLoops,      ///< a loop is one dimension of every operand
  kWholeIndices,  ///< indices end with a stick, or inside their first
  kWithinReach,   ///< the nodes are those that run: no core reaches too far for any division
  kDivisions,     ///< loops are cut into slices for the cores
  kBundles,       ///< nodes are grouped into bundles
  kJoint,         ///< divisions are those that suit the scratchpads best
  kOrder,         ///< nodes are in the order they run in
  kScratchpads,   ///< what stays in LX has its address
  kPlaces,        ///< every local buffer has a place
};

/// "every node is one operation of the card"
std::string_view to_string(Fact fact);

/// What passes share while one graph is compiled.
struct PassContext {
  const CompileOptions& options;
  PassLog& log;
  CompiledGraph& found;  ///< plans and reports go here
  lx::Planner planner;   ///< joint planning, reordering and planning ask alike, and it remembers

  PassContext(const CompileOptions& asked, PassLog& written, CompiledGraph& result)
      : options(asked), log(written), found(result), planner(asked.scratchpad) {}
};

/// One row of the pipeline. Source file, text test and command-line name are one stem: `divide-work` is
/// spyre/passes/.../divide_work.cpp and tests/text/passes/divide_work.ir.
struct Pass {
  std::string_view name;
  std::string_view summary;  ///< what it decides
  std::vector<Fact> needs = {}, gives = {};
  std::vector<Fact> too_late_after = {};  ///< facts that it would undo, or that were found without it
  bool (*wanted)(const CompileOptions&) = nullptr;  ///< null: always
  using OnCaptured = Status (*)(Graph&, PassContext&);
  using Selection = Result<DeviceGraph> (*)(Graph, PassContext&);
  using OnDevice = Status (*)(DeviceGraph&, PassContext&);
  std::variant<OnCaptured, Selection, OnDevice> run;  ///< which of the two graphs it takes, and leaves

  bool takes_device_graph() const { return std::holds_alternative<OnDevice>(run); }
};

/// The whole compiler, in the order it runs: compile.cpp.
std::span<const Pass> passes();
const Pass* find_pass(std::string_view name);

/// Whether passes may run in this order. The error says which pass must not stand where it does, and why.
Status check_order(std::span<const Pass> order);

/// Whether a graph shows what a pass needs, as far as graphs show it (operations and layouts; nobody can see of a loop
/// in one piece whether it was decided). The error says which pass gives what is missing.
Status check_ready(const Pass& pass, const AnyGraph& graph);

/// One pass alone, on a graph that carries what earlier ones decided. Refused: a graph that is not ready for it.
Status run_pass(const Pass& pass, AnyGraph& graph, const CompileOptions& options);
/// The same inside a compilation: of a graph that is ready.
Status run_pass(const Pass& pass, AnyGraph& graph, PassContext& context);

/// The text of a graph that a pass may run on: that of a device graph for those after selection.
Result<AnyGraph> parse_for(const Pass& pass, std::string_view text, std::string_view origin = "graph");

/// The passes as a table of spyre/passes/README.md.
std::string passes_markdown();

}  // namespace spyre
