#include "spyre/lx/planner.h"

#include <fmt/format.h>

#include "spyre/arch/machine.h"
#include "spyre/lx/place_writer.h"
#include "spyre/lx/plan_entries.h"
#include "spyre/solve/validate.h"

namespace spyre::lx {
namespace {

// A tenth of the solver's default: a plan for a graph of some hundred buffers in tenths of a second.
constexpr int64_t kSolverUnits = solve::Deadline::kDefaultUnits / 10;
// Comparing problems costs more than it saves once there are many; what is asked again was asked recently.
constexpr size_t kMostKnown = 8;

}  // namespace

Result<Bytes> usable_lx(double back_end_fraction) {
  constexpr Bytes kProgramBytes = kibibytes(64);
  if (!(back_end_fraction >= 0 && back_end_fraction <= 1)) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("DXP_LX_FRAC_AVAIL is {}, allowed are 0 to 1", back_end_fraction));
  }
  const auto trackable = static_cast<double>((spyre_card().lx_per_core - kProgramBytes).count());
  const auto left = static_cast<int64_t>(trackable * (1 - back_end_fraction));
  return round_up(Bytes(left), kStickBytes);
}

Result<solve::Solution> Planner::ask(const solve::Problem& problem, const std::function<void()>& progress) {
  for (const auto& [asked, solution] : known_) {
    if (asked == problem) return solution;
  }
  SPYRE_ASSIGN_OR_RETURN(solve::Solution solution,
                         solve::place(problem, options_.solver, solve::Deadline(kSolverUnits)));
  const Status legal = solve::validate(problem, solution.placement);
  SPYRE_CHECK(legal.ok(), fmt::format("solver '{}': {}", options_.solver, legal.error().message));
  if (progress) progress();
  if (known_.size() == kMostKnown) known_.pop_front();
  known_.emplace_back(problem, solution);
  return solution;
}

Result<Plan> Planner::plan(DeviceGraph& graph, Effort effort, const std::function<void()>& progress) {
  SPYRE_ASSIGN_OR_RETURN(const Analysis analysis, Analysis::of(graph, options_.moves));
  AllocationProblem best = allocation_problem(analysis, {.capacity = options_.capacity});
  SPYRE_ASSIGN_OR_RETURN(solve::Solution solution, ask(best.problem, progress));
  Plan plan{.capacity = options_.capacity,
            .solver = options_.solver,
            .optimal = solution.optimal,
            .work = solution.work,
            .asked = best.problem};
  const Bytes saved = solve::bytes_saved(best.problem, solution.placement);
  if (effort == Effort::kFull && saved < solve::bytes_at_stake(best.problem)) {
    // Only what finds no room whole is worth asking for in parts.
    AllocationProblem full = allocation_problem(analysis, {.capacity = options_.capacity, .full = true});
    if (full.problem != best.problem) {
      SPYRE_ASSIGN_OR_RETURN(solve::Solution parts, ask(full.problem, progress));
      plan.work += parts.work;
      plan.optimal = parts.optimal;
      plan.asked = full.problem;
      if (solve::bytes_saved(full.problem, parts.placement) > saved) {
        best = std::move(full);
        solution = std::move(parts);
      }
    }
  }
  plan.entries = plan_entries(analysis, best, solution.placement);
  for (const DeviceNode& node : graph.nodes) plan.nodes.push_back(node.name);
  write_places(graph, analysis.access(), best, solution.placement);
  return plan;
}

}  // namespace spyre::lx
