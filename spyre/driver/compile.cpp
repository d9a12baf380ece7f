#include "spyre/driver/compile.h"

#include <fmt/format.h>

#include "spyre/base/settings.h"
#include "spyre/opspec/lower.h"
#include "spyre/passes/align_divisions.h"
#include "spyre/passes/assign_layouts.h"
#include "spyre/passes/cut_bundles.h"
#include "spyre/passes/divide_nodes.h"
#include "spyre/passes/eliminate_dead_code.h"
#include "spyre/passes/pad_contractions.h"
#include "spyre/passes/peel_indices.h"
#include "spyre/passes/plan_pool.h"
#include "spyre/passes/select_ops.h"
#include "spyre/passes/tile_spans.h"

namespace spyre {
namespace {

Status without_failure(Graph& graph, void (*pass)(Graph&)) {
  pass(graph);
  return Status();
}

// The whole compiler, in the order it runs.
Status optimize(Graph& graph, const CompileOptions& options, PassLog& log, CompiledGraph& plans) {
  ScratchpadOptions scratchpad = options.scratchpad;
  scratchpad.known = std::make_shared<KnownAnswers>();
  SPYRE_TRY(log.run("eliminate-dead-code", graph,
                    [](Graph& g) { return without_failure(g, eliminate_dead_code); }));
  SPYRE_TRY(log.run("select-ops", graph, select_ops));
  SPYRE_TRY(
      log.run("pad-contractions", graph, [](Graph& g) { return without_failure(g, pad_contractions); }));
  SPYRE_TRY(log.run("assign-layouts", graph, [](Graph& g) { return assign_layouts(g); }));
  // Only now is it known where dimensions end, and with it which loops are two.
  SPYRE_TRY(log.run("cut-loops", graph, cut_loops));
  SPYRE_TRY(log.run("peel-indices", graph, peel_indices));
  SPYRE_TRY(log.run("tile-spans", graph, [&](Graph& g) { return tile_spans(g, options.cores); }));
  SPYRE_TRY(log.run("divide-work", graph, [&](Graph& g) -> Status {
    SPYRE_ASSIGN_OR_RETURN(plans.refused_hints, divide_nodes(g, options.cores));
    return Status();
  }));
  // Of each buffer in LX it matters which bundles touch it.
  SPYRE_TRY(log.run("cut-bundles", graph, [&](Graph& g) {
    cut_bundles(g, options.bundle_ops);
    return Status();
  }));
  // What a core holds follows from the division; what LX does not take lies in the pool.
  if (options.lx_planning) {
    SPYRE_TRY(log.run("align-divisions", graph, [&](Graph& g) { return align_divisions(g, options.cores); }));
    if (options.co_optimize) {
      SPYRE_TRY(log.run("co-optimize", graph, [&](Graph& g) -> Status {
        SPYRE_ASSIGN_OR_RETURN(plans.joint, co_optimize(g, {.cores = options.cores,
                                                            .scratchpad = scratchpad,
                                                            .keep_sums = options.keep_sums,
                                                            .progress = log.progress_of("co-optimize")}));
        return Status();
      }));
    }
    // What a core holds of every buffer is known, so an order can be judged by what fits. Bundles are runs of
    // the order the graph has: where it is cut, it stays.
    if (options.reorder && options.bundle_ops == 0) {
      SPYRE_TRY(log.run("reorder-nodes", graph, [&](Graph& g) -> Status {
        SPYRE_ASSIGN_OR_RETURN(plans.order, reorder_nodes(g, {.scratchpad = scratchpad}));
        return Status();
      }));
    }
    SPYRE_TRY(log.run("plan-scratchpad", graph, [&](Graph& g) -> Status {
      scratchpad.progress = log.progress_of("plan-scratchpad");
      SPYRE_ASSIGN_OR_RETURN(plans.scratchpad, plan_scratchpad(g, scratchpad));
      return Status();
    }));
  }
  return log.run("plan-pool", graph, plan_pool);
}

std::vector<KernelArgument> arguments_of(const Graph& graph) {
  std::vector<KernelArgument> arguments;
  for (const BufferId id : launch_buffers(graph)) {
    const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
    KernelArgument argument{.name = buffer.name,
                            .layout = *buffer.layout,
                            .dtype = buffer.dtype,
                            .size = buffer.size,
                            .stride = buffer.stride,
                            .offset = buffer.offset,
                            .storage = buffer.storage};
    argument.role = buffer.is_input ? KernelArgument::Role::kInput
                    : buffer.fill   ? KernelArgument::Role::kConstant
                                    : KernelArgument::Role::kOutput;
    if (buffer.fill) argument.fill = *buffer.fill;
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

// An input that no node touches never met a layout pass that would ask for its layout.
Status complete_layouts(Graph& graph) {
  for (Buffer& buffer : graph.buffers) {
    if (buffer.layout) continue;
    SPYRE_ASSIGN_OR_RETURN(buffer.layout,
                           DeviceLayout::standard(buffer.size, info_of(buffer.dtype).device_format));
  }
  return Status();
}

// A refusal of the code generator with the node it is about: the first that is refused by itself.
Error with_node(const Error& cause, const Graph& graph, const Kernel& kernel) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Kernel alone = kernel;
    alone.body = {kernel.body[i]};
    if (write_bundle(alone).ok()) continue;
    const Node& node = graph.nodes[i];
    Error error(cause.kind, fmt::format("codegen: node '{}': {}", node.name, cause.message));
    error.notes = cause.notes;
    if (!node.aten.empty()) error.notes.push_back("it comes from " + node.aten);
    if (!node.source.empty()) error.notes.push_back("written at " + node.source);
    error.hint = cause.hint;
    return error;
  }
  return cause;
}

// The bundles of the kernel, whose body has one item per node.
std::vector<BundlePart> parts_of(const Graph& graph) {
  std::vector<BundlePart> parts;
  for (const bool mark : non_terminal_bundles(graph)) parts.push_back({.items = 0, .non_terminal = mark});
  for (const Node& node : graph.nodes) ++parts[static_cast<size_t>(node.bundle)].items;
  return parts;
}

}  // namespace

Result<CompileOptions> CompileOptions::from_environment() {
  CompileOptions options;
  SPYRE_ASSIGN_OR_RETURN(options.cores, read_int("SENCORES"));
  SPYRE_ASSIGN_OR_RETURN(options.lx_planning, read_bool("LX_PLANNING"));
  SPYRE_ASSIGN_OR_RETURN(options.co_optimize, read_bool("CO_OPTIMIZING_LX_PLANNING"));
  SPYRE_ASSIGN_OR_RETURN(options.keep_sums, read_bool("SPYRE_KEEP_SUM_ORDER"));
  SPYRE_ASSIGN_OR_RETURN(options.bundle_ops, read_int("SPYRE_BUNDLE_OPS"));
  SPYRE_ASSIGN_OR_RETURN(options.scratchpad.across_bundles, read_bool("SPYRE_NON_TERMINAL"));
  SPYRE_ASSIGN_OR_RETURN(options.scratchpad.clone_inputs, read_bool("LX_BOUNDARY_CLONES"));
  options.scratchpad.copy_out = options.scratchpad.clone_inputs;
  SPYRE_ASSIGN_OR_RETURN(options.scratchpad.relayouts, read_bool("SPYRE_LX_PLANNER_RELAYOUT"));
  SPYRE_ASSIGN_OR_RETURN(options.scratchpad.evictions, read_bool("SPYRE_LX_PLANNER_EVICTION"));
  SPYRE_ASSIGN_OR_RETURN(options.reorder, read_bool("SPYRE_LX_PLANNER_REORDER"));
  SPYRE_ASSIGN_OR_RETURN(options.scratchpad.solver, read_string("LAYOUT_SOLVER"));
  SPYRE_ASSIGN_OR_RETURN(const double back_end_fraction, read_float("DXP_LX_FRAC_AVAIL"));
  SPYRE_ASSIGN_OR_RETURN(options.scratchpad.capacity, usable_lx(back_end_fraction));
  return options;
}

Result<CompiledGraph> compile(Graph graph, const CompileOptions& options, PassLog& log) {
  CompiledGraph compiled;
  compiled.options = options;
  for (Node& node : graph.nodes) node.bundle = 0;  // decided by us
  SPYRE_TRY(check_sizes(graph));
  SPYRE_TRY(optimize(graph, options, log, compiled));
  SPYRE_TRY(complete_layouts(graph));
  const std::vector<BundlePart> parts = parts_of(graph);
  compiled.arguments = arguments_of(graph);
  SPYRE_TRY(log.time("write-bundle", [&]() -> Status {
    SPYRE_ASSIGN_OR_RETURN(compiled.kernel, lower_to_kernel(graph));
    Result<Bundle> bundle = write_bundle(compiled.kernel, {.parts = parts});
    if (!bundle.ok()) return with_node(bundle.error(), graph, compiled.kernel);
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
