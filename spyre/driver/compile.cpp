#include "spyre/driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spyre/driver/pass.h"
#include "spyre/opspec/lower.h"
#include "spyre/passes/bundle/cut_bundles.h"
#include "spyre/passes/divide/align_divisions.h"
#include "spyre/passes/divide/divide_work.h"
#include "spyre/passes/divide/peel_indices.h"
#include "spyre/passes/divide/tile_spans.h"
#include "spyre/passes/layout/assign_layouts.h"
#include "spyre/passes/layout/cut_loops.h"
#include "spyre/passes/plan/plan_pool.h"
#include "spyre/passes/select/cut_extents.h"
#include "spyre/passes/select/eliminate_dead_code.h"
#include "spyre/passes/select/expand_calls.h"
#include "spyre/passes/select/index_by_views.h"
#include "spyre/passes/select/mask_extents.h"
#include "spyre/passes/select/pad_contractions.h"
#include "spyre/passes/select/place_parts.h"
#include "spyre/passes/select/select_ops.h"
#include "spyre/passes/select/unflatten_products.h"

namespace spyre {
namespace {

// A row's `run` for a pass that only takes the graph.
template <class GraphType, void (*pass)(GraphType&)>
Status changed(GraphType& graph, PassContext& /*context*/) {
  pass(graph);
  return Status();
}
template <class GraphType, Status (*pass)(GraphType&)>
Status tried(GraphType& graph, PassContext& /*context*/) {
  return pass(graph);
}

bool plans_lx(const CompileOptions& options) {
  return options.lx_planning;
}

// The whole compiler, in the order it runs. Rows say what must not change places; comments say why.
const std::vector<Pass>& table() {
  using enum Fact;
  static const auto& rows = *new std::vector<Pass>{
      {.name = "index-by-views",
       .summary = "which elements by position are views, because the positions only count",
       .too_late_after = {kLoops},
       .run = changed<Graph, index_by_views>},
      {.name = "unflatten-products",
       .summary = "which axes matrix products have, where the program merged some",
       // A product that is a part of another buffer can have no axes that this one has not.
       .too_late_after = {kPartsPlaced, kLoops},
       .run = changed<Graph, unflatten_products>},
      {.name = "place-parts",
       .summary = "which buffers are parts of others from the start, because they are copied there",
       .gives = {kPartsPlaced},
       .too_late_after = {kLoops},
       .run = changed<Graph, place_parts>},
      {.name = "expand-calls",
       .summary = "which loops make up each operator that was kept whole, by its form",
       .gives = {kLoops},
       .too_late_after = {kDeviceOps},
       .run = tried<Graph, expand_calls>},
      {.name = "mask-extents",
       .summary = "what folds read behind extents that are known at launch only",
       .needs = {kLoops},
       .too_late_after = {kFixedLengths},
       .run = tried<Graph, mask_extents>},
      {.name = "cut-extents",
       .summary = "how far loops along extents run, and how long buffers of the graph's own are",
       .needs = {kLoops},
       .gives = {kFixedLengths},
       .too_late_after = {kDeviceOps},
       .run = changed<Graph, cut_extents>},
      {.name = "eliminate-dead-code",
       .summary = "what need not run",
       .needs = {kLoops},
       .run = changed<Graph, eliminate_dead_code>},
      {.name = "select-ops",
       .summary = "which operations of the card make up each node",
       .needs = {kLoops},
       .gives = {kDeviceOps},
       .too_late_after = {kWholeSums},
       .run = [](Graph graph, PassContext&) { return select_ops(std::move(graph)); }},
      {.name = "pad-contractions",
       .summary = "zeros behind summed dimensions that do not end with a stick",
       .needs = {kDeviceOps},
       .gives = {kWholeSums},
       .too_late_after = {kLayouts},
       .run = changed<DeviceGraph, pad_contractions>},
      {.name = "assign-layouts",
       .summary = "device layouts and the copies between them",
       .needs = {kDeviceOps, kWholeSums},
       .gives = {kLayouts},
       .run = [](DeviceGraph& graph, PassContext&) { return assign_layouts(graph); }},
      // Only now is it known where dimensions end, and with it which loops are two.
      {.name = "cut-loops",
       .summary = "where loops end with the dimensions of their tensors",
       .needs = {kDeviceOps, kLayouts},
       .gives = {kCutLoops},
       .run = tried<DeviceGraph, cut_loops>},
      {.name = "peel-indices",
       .summary = "where gathers are cut so that cores read whole sticks of indices",
       .needs = {kDeviceOps, kLayouts, kCutLoops},
       .gives = {kWholeIndices},
       .too_late_after = {kDivisions},
       .run = tried<DeviceGraph, peel_indices>},
      {.name = "tile-spans",
       .summary = "which nodes run in parts, because a core reaches no more of their tensors",
       .needs = {kDeviceOps, kLayouts, kCutLoops, kWholeIndices},
       .gives = {kWithinReach},
       .too_late_after = {kDivisions, kBundles},
       .run = [](DeviceGraph& graph,
                 PassContext& context) { return tile_spans(graph, context.options.cores); }},
      {.name = "divide-work",
       .summary = "how many cores share each loop",
       .needs = {kDeviceOps, kLayouts, kWithinReach},
       .gives = {kDivisions},
       .run = [](DeviceGraph& graph, PassContext& context) -> Status {
         SPYRE_ASSIGN_OR_RETURN(context.found.refused_hints, divide_work(graph, context.options.cores));
         return Status();
       }},
      // Of each buffer in LX it matters which bundles touch it.
      {.name = "cut-bundles",
       .summary = "which operations are launched together",
       .needs = {kWithinReach},
       .gives = {kBundles},
       .run =
           [](DeviceGraph& graph, PassContext& context) {
             cut_bundles(graph, context.options.bundle_ops);
             return Status();
           }},
      // What a core holds follows from the division; what LX does not take lies in the pool.
      {.name = "align-divisions",
       .summary = "which nodes are divided as their producers are",
       .needs = {kDeviceOps, kLayouts, kDivisions},
       .too_late_after = {kJoint, kScratchpads},
       .wanted = plans_lx,
       .run = [](DeviceGraph& graph,
                 PassContext& context) { return align_divisions(graph, context.options.cores); }},
      {.name = "co-optimize",
       .summary = "the divisions of all nodes, together with what then stays in LX",
       .needs = {kDeviceOps, kLayouts, kDivisions, kBundles},
       .gives = {kJoint},
       .too_late_after = {kOrder, kScratchpads},
       .wanted = [](const CompileOptions& options) { return options.lx_planning && options.co_optimize; },
       .run = [](DeviceGraph& graph, PassContext& context) -> Status {
         SPYRE_ASSIGN_OR_RETURN(context.found.joint,
                                co_optimize(graph, context.planner,
                                            {.cores = context.options.cores,
                                             .objective = context.options.objective,
                                             .keep_sums = context.options.keep_sums,
                                             .progress = context.log.progress_of("co-optimize")}));
         return Status();
       }},
      // What a core holds of every buffer is known, so an order can be judged by what fits. Bundles are runs of the order
      // the graph has: where it is cut, it stays.
      {.name = "reorder-nodes",
       .summary = "another order of nodes, where more fits into the scratchpads then",
       .needs = {kDeviceOps, kLayouts, kDivisions, kBundles},
       .gives = {kOrder},
       .too_late_after = {kScratchpads},
       .wanted =
           [](const CompileOptions& options) {
             return options.lx_planning && options.reorder && options.bundle_ops == 0;
           },
       .run = [](DeviceGraph& graph, PassContext& context) -> Status {
         SPYRE_ASSIGN_OR_RETURN(context.found.order, reorder_nodes(graph, context.planner,
                                                                   {.objective = context.options.objective}));
         return Status();
       }},
      {.name = "plan-scratchpad",
       .summary = "what stays in the cores' scratchpads, and at which address",
       .needs = {kDeviceOps, kLayouts, kDivisions, kBundles},
       .gives = {kScratchpads},
       .too_late_after = {kPlaces},
       .wanted = plans_lx,
       .run = [](DeviceGraph& graph, PassContext& context) -> Status {
         SPYRE_ASSIGN_OR_RETURN(
             context.found.scratchpad,
             plan_scratchpad(graph, context.planner, context.log.progress_of("plan-scratchpad")));
         return Status();
       }},
      {.name = "plan-pool",
       .summary = "where local buffers lie in device memory",
       .needs = {kLayouts, kWithinReach},
       .gives = {kPlaces},
       .run = tried<DeviceGraph, plan_pool>},
  };
  return rows;
}

Result<DeviceGraph> optimize(Graph captured, const CompileOptions& options, PassLog& log,
                             CompiledGraph& found) {
  PassContext context(options, log, found);
  AnyGraph graph = std::move(captured);
  for (const Pass& pass : passes()) {
    if (pass.wanted != nullptr && !pass.wanted(options)) continue;
    SPYRE_TRY(run_pass(pass, graph, context));
  }
  return std::get<DeviceGraph>(std::move(graph));
}

std::vector<KernelArgument> arguments_of(const DeviceGraph& graph) {
  std::vector<KernelArgument> arguments;
  for (const BufferId id : launch_buffers(graph)) {
    const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
    KernelArgument argument{.name = buffer.name,
                            .layout = *buffer.layout,
                            .dtype = buffer.dtype,
                            .size = buffer.size,
                            .stride = buffer.stride,
                            .most = buffer.size,
                            .offset = buffer.offset,
                            .storage = buffer.storage};
    argument.role = buffer.is_input ? KernelArgument::Role::kInput
                    : buffer.fill   ? KernelArgument::Role::kConstant
                                    : KernelArgument::Role::kOutput;
    if (buffer.fill) argument.fill = *buffer.fill;
    for (size_t d = 0; d < buffer.bounds.size(); ++d) {
      argument.open.push_back(buffer.bounds[d] != kFixed);
      if (buffer.bounds[d] != kFixed)
        argument.most[d] = graph.extents[static_cast<size_t>(buffer.bounds[d])].most;
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

// An input that no node touches never met a layout pass that would ask for its layout.
Status complete_layouts(DeviceGraph& graph) {
  for (Buffer& buffer : graph.buffers) {
    if (buffer.layout) continue;
    SPYRE_ASSIGN_OR_RETURN(buffer.layout,
                           DeviceLayout::standard(buffer.size, info_of(buffer.dtype).device_format));
  }
  return Status();
}

// A refusal of the code generator with the node it is about: the kernel's body has one item per node.
Error with_node(Error error, const DeviceGraph& graph, const std::set<std::string>& written) {
  if (!error.item) return error;
  const auto refused = graph.nodes.begin() + static_cast<std::ptrdiff_t>(*error.item);
  error.message = fmt::format("codegen: node '{}': {}", refused->name, error.message);
  // A copy that a pass made comes before the node that it was made for.
  const auto known = std::find_if(refused, graph.nodes.end(), [&](const DeviceNode& node) {
    return written.contains(origin_of(node).name);
  });
  return std::move(error).about(origin_of(known == graph.nodes.end() ? *refused : *known));
}

Status check_cores(const CompileOptions& options) {
  if (options.cores <= options.machine.cores) return {};
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("work cannot be divided over {} cores: {} has {}", options.cores,
                           options.machine.name, options.machine.cores))
      .try_instead(fmt::format("SENCORES={}", options.machine.cores));
}

// The bundles of the kernel, whose body has one item per node.
std::vector<BundlePart> parts_of(const DeviceGraph& graph) {
  std::vector<BundlePart> parts;
  for (const bool mark : non_terminal_bundles(graph)) parts.push_back({.items = 0, .non_terminal = mark});
  for (const DeviceNode& node : graph.nodes) ++parts[static_cast<size_t>(node.bundle)].items;
  return parts;
}

}  // namespace

std::span<const Pass> passes() {
  static const Status order = check_order(table());
  SPYRE_CHECK(order.ok(), order.error().to_string());
  return table();
}

Result<CompileOptions> CompileOptions::from_settings(const SettingValues& settings) {
  CompileOptions options;
  SPYRE_ASSIGN_OR_RETURN(options.cores, settings.read<int64_t>("SENCORES"));
  SPYRE_ASSIGN_OR_RETURN(options.lx_planning, settings.read<bool>("LX_PLANNING"));
  SPYRE_ASSIGN_OR_RETURN(options.co_optimize, settings.read<bool>("CO_OPTIMIZING_LX_PLANNING"));
  SPYRE_ASSIGN_OR_RETURN(options.keep_sums, settings.read<bool>("SPYRE_KEEP_SUM_ORDER"));
  SPYRE_ASSIGN_OR_RETURN(const std::string objective, settings.read<std::string>("SPYRE_PLAN_OBJECTIVE"));
  options.objective = lx::objective_of(objective);
  SPYRE_ASSIGN_OR_RETURN(options.bundle_ops, settings.read<int64_t>("SPYRE_BUNDLE_OPS"));
  SPYRE_ASSIGN_OR_RETURN(const bool across_bundles, settings.read<bool>("SPYRE_NON_TERMINAL"));
  SPYRE_ASSIGN_OR_RETURN(const bool boundary_copies, settings.read<bool>("LX_BOUNDARY_CLONES"));
  SPYRE_ASSIGN_OR_RETURN(const bool shuffles, settings.read<bool>("SPYRE_LX_PLANNER_RELAYOUT"));
  SPYRE_ASSIGN_OR_RETURN(const bool evictions, settings.read<bool>("SPYRE_LX_PLANNER_EVICTION"));
  options.scratchpad.moves = lx::MoveSet::all()
                                 .where(lx::Move::kCrossBundles, across_bundles)
                                 .where(lx::Move::kCopyIn, boundary_copies)
                                 .where(lx::Move::kCopyOut, boundary_copies)
                                 .where(lx::Move::kShuffle, shuffles)
                                 .where(lx::Move::kEvict, evictions);
  SPYRE_ASSIGN_OR_RETURN(options.reorder, settings.read<bool>("SPYRE_LX_PLANNER_REORDER"));
  SPYRE_ASSIGN_OR_RETURN(options.scratchpad.solver, settings.read<std::string>("LAYOUT_SOLVER"));
  SPYRE_ASSIGN_OR_RETURN(const double back_end_fraction, settings.read<double>("DXP_LX_FRAC_AVAIL"));
  SPYRE_ASSIGN_OR_RETURN(options.scratchpad.capacity, lx::usable_lx(back_end_fraction));
  return options;
}

Result<CompiledGraph> compile(Graph captured, const CompileOptions& options, PassLog& log) {
  CompiledGraph compiled;
  compiled.options = options;
  std::set<std::string> written;  // names of nodes as whoever wrote the graph knows them
  for (Node& node : captured.nodes) {
    node.bundle = 0;  // decided by us
    written.insert(node.name);
  }
  SPYRE_TRY(check_cores(options));
  SPYRE_TRY(check_sizes(captured));
  SPYRE_ASSIGN_OR_RETURN(DeviceGraph graph, optimize(std::move(captured), options, log, compiled));
  SPYRE_TRY(complete_layouts(graph));
  const std::vector<BundlePart> parts = parts_of(graph);
  compiled.arguments = arguments_of(graph);
  SPYRE_TRY(log.time("write-bundle", [&]() -> Status {
    SPYRE_ASSIGN_OR_RETURN(compiled.kernel, lower_to_kernel(graph));
    Result<Bundle> bundle = write_bundle(compiled.kernel, {.machine = options.machine, .parts = parts});
    if (!bundle.ok()) return with_node(bundle.error(), graph, written);
    compiled.bundle = std::move(bundle).value();
    if (parts.size() > 1) compiled.caller_pool = Bytes(compiled.kernel.pool_bytes);
    return Status();
  }));
  compiled.graph = std::move(graph);
  return compiled;
}

Result<CompiledGraph> compile(Graph graph, const CompileOptions& options) {
  PassLog log;
  return compile(std::move(graph), options, log);
}

}  // namespace spyre
