#include "spyre/passes/plan_scratchpad.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/arch/machine.h"
#include "spyre/passes/scratchpad/clone_input.h"
#include "spyre/passes/scratchpad/residency.h"
#include "spyre/solve/solver.h"
#include "spyre/solve/validate.h"

namespace spyre {
namespace {

// A tenth of the solver's default: a plan for a graph of some hundred buffers in tenths of a second.
constexpr int64_t kSolverUnits = solve::Deadline::kDefaultUnits / 10;

// The placement problem, and which buffer of the graph each of its entries is.
struct Question {
  solve::Problem problem;
  std::vector<BufferId> buffers;
};

solve::Buffer candidate(const Graph& graph, const GraphAccess& access, const Residency& residency,
                        BufferId id) {
  const std::vector<BufferTouch>& touches = access.touches[static_cast<size_t>(id)];
  int64_t nodes = 0;
  for (size_t i = 0; i < touches.size(); ++i) nodes += i == 0 || touches[i].node != touches[i - 1].node;
  const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
  return {.name = buffer.name,
          .live = {solve::Step(static_cast<int64_t>(touches.front().node)),
                   solve::Step(static_cast<int64_t>(touches.back().node) + 1)},
          .size = std::max(residency.per_core, kStickBytes),
          .uses = nodes,
          .input = buffer.is_input || buffer.fill.has_value(),
          .saves = residency.saves,
          .in_place_parents = {},
          .fixed = {},
          .barred = residency.barred};
}

Question question_of(const Graph& graph, const GraphAccess& access, const std::vector<Residency>& residencies,
                     const ScratchpadOptions& options) {
  Question question{.problem = {.capacity = options.capacity, .buffers = {}}, .buffers = {}};
  for (BufferId id = 0; id < std::ssize(graph.buffers); ++id) {
    if (!access.touches[static_cast<size_t>(id)].empty()) question.buffers.push_back(id);
  }
  std::stable_sort(question.buffers.begin(), question.buffers.end(), [&](BufferId a, BufferId b) {
    return access.touches[static_cast<size_t>(a)].front().node <
           access.touches[static_cast<size_t>(b)].front().node;
  });
  std::vector<int> position(graph.buffers.size(), -1);
  for (const BufferId id : question.buffers) {
    position[static_cast<size_t>(id)] = static_cast<int>(question.problem.buffers.size());
    question.problem.buffers.push_back(candidate(graph, access, residencies[static_cast<size_t>(id)], id));
  }
  if (!options.in_place) return question;
  for (size_t i = 0; i < question.buffers.size(); ++i) {
    for (const BufferId parent : in_place_parents(graph, access, residencies, question.buffers[i])) {
      question.problem.buffers[i].in_place_parents.push_back(position[static_cast<size_t>(parent)]);
    }
  }
  return question;
}

ScratchpadPlan plan_of(const Question& question, const solve::Solution& solution,
                       const ScratchpadOptions& options) {
  ScratchpadPlan plan{
      .capacity = options.capacity, .solver = options.solver, .optimal = solution.optimal, .entries = {}};
  const auto& offsets = solution.placement.offset;
  for (size_t i = 0; i < question.buffers.size(); ++i) {
    const solve::Buffer& buffer = question.problem.buffers[i];
    ScratchpadPlan::Entry entry{.buffer = buffer.name,
                                .first = buffer.live.begin.count(),
                                .last = buffer.live.end.count() - 1,
                                .per_core = buffer.size,
                                .address = offsets[i],
                                .reason = {},
                                .in_place_of = {},
                                .clone = buffer.input && offsets[i].has_value(),
                                .saves = buffer.saves};
    if (!offsets[i]) entry.reason = solve::spill_reason(question.problem, static_cast<int>(i));
    for (const int parent : buffer.in_place_parents) {
      if (offsets[i] && offsets[static_cast<size_t>(parent)] == offsets[i])
        entry.in_place_of = question.problem.buffers[static_cast<size_t>(parent)].name;
    }
    plan.entries.push_back(std::move(entry));
  }
  return plan;
}

void write_places(Graph& graph, const GraphAccess& access, const Question& question,
                  const solve::Placement& placement) {
  std::vector<PlannedClone> clones;
  for (size_t i = 0; i < question.buffers.size(); ++i) {
    if (!placement.offset[i]) continue;
    const BufferId id = question.buffers[i];
    const BufferPlace place{BufferPlace::Kind::kLx, placement.offset[i]->count()};
    if (graph.buffers[static_cast<size_t>(id)].is_input) {
      clones.push_back(plan_clone(graph, access, id, place));
    } else {
      graph.buffers[static_cast<size_t>(id)].place = place;
    }
  }
  insert_clones(graph, std::move(clones));
}

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

Result<ScratchpadPlan> plan_scratchpad(Graph& graph, const ScratchpadOptions& options) {
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  const std::vector<Residency> residents = residencies(graph, access, {.clone_inputs = options.clone_inputs});
  const Question question = question_of(graph, access, residents, options);
  SPYRE_ASSIGN_OR_RETURN(const solve::Solution solution,
                         solve::place(question.problem, options.solver, solve::Deadline(kSolverUnits)));
  const Status legal = solve::validate(question.problem, solution.placement);
  SPYRE_CHECK(legal.ok(), fmt::format("solver '{}': {}", options.solver, legal.error().message));
  ScratchpadPlan plan = plan_of(question, solution, options);
  write_places(graph, access, question, solution.placement);
  return plan;
}

}  // namespace spyre
