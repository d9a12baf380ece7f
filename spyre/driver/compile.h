#pragma once

#include <string>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/base/settings.h"
#include "spyre/codegen/superdsc/bundle.h"
#include "spyre/driver/pass_log.h"
#include "spyre/graph/device_graph.h"
#include "spyre/passes/bundle/reorder_nodes.h"
#include "spyre/passes/divide/co_optimize.h"
#include "spyre/passes/divide/refused_hint.h"
#include "spyre/passes/plan/plan_scratchpad.h"

/// The compiler: a graph in, the artifacts of one kernel out.
namespace spyre {

/// What a compilation may be asked for, as a value; the table of settings has the meanings and the defaults.
struct CompileOptions {
  int64_t cores = setting_default<int64_t>("SENCORES");
  bool lx_planning = setting_default<bool>("LX_PLANNING");
  bool co_optimize = setting_default<bool>("CO_OPTIMIZING_LX_PLANNING");
  lx::Objective objective = lx::objective_of(setting_default<std::string>("SPYRE_PLAN_OBJECTIVE"));
  bool keep_sums = setting_default<bool>("SPYRE_KEEP_SUM_ORDER");
  bool reorder = setting_default<bool>("SPYRE_LX_PLANNER_REORDER");
  int64_t bundle_ops = setting_default<int64_t>("SPYRE_BUNDLE_OPS");
  lx::PlannerOptions scratchpad;
  Machine machine = spyre_card();  ///< that the artifact is for: how much LX there is

  /// The options that these settings ask for. Refused: values of the environment that are out of range.
  static Result<CompileOptions> from_settings(const SettingValues& settings);
  static Result<CompileOptions> from_environment() { return from_settings({}); }
};

/// One launch argument, in launch order. Constants come last, and are not the caller's: the artifact holds
/// them.
struct KernelArgument {
  std::string name;
  DeviceLayout layout;
  HostType dtype = HostType::kFloat16;
  std::vector<int64_t> size, stride;
  std::vector<bool> open;           ///< the dimensions that change from call to call; empty: none
  std::vector<int64_t> most;        ///< of those, what a call of this program may have; of others `size`
  int64_t offset = 0, storage = 0;  ///< of a view, as in Buffer
  enum class Role : uint8_t { kInput, kOutput, kConstant };
  Role role = Role::kInput;
  Fill fill;  ///< of a constant

  bool is_open() const { return !open.empty(); }
};

struct CompiledGraph {
  DeviceGraph graph;  ///< after all passes
  Kernel kernel;      ///< the same, everything decided
  Bundle bundle;
  std::vector<KernelArgument> arguments;  ///< inputs, outputs, constants
  /// Device memory that the caller passes in front of the arguments, for what several bundles share; 0: none.
  Bytes caller_pool;
  lx::Plan scratchpad;                     ///< empty without LX planning
  std::vector<RefusedHint> refused_hints;  ///< wished splits that the work could not be divided by
  std::optional<CoOptimizeReport> joint;   ///< with co-optimization: what it found
  std::optional<ReorderReport> order;      ///< with re-ordering: what it found
  CompileOptions options;                  ///< what it was compiled with
};

/// Runs every pass and writes the bundle. Refusals say which pass refused what, where it comes from and what
/// to try. Deterministic: equal graphs and options give equal bytes.
Result<CompiledGraph> compile(Graph captured, const CompileOptions& options, PassLog& log);
Result<CompiledGraph> compile(Graph graph, const CompileOptions& options = {});

}  // namespace spyre
