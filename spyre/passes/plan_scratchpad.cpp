#include "spyre/passes/plan_scratchpad.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/arch/machine.h"
#include "spyre/passes/scratchpad/place_writer.h"
#include "spyre/solve/solver.h"
#include "spyre/solve/validate.h"

namespace spyre {
namespace {

// A tenth of the solver's default: a plan for a graph of some hundred buffers in tenths of a second.
constexpr int64_t kSolverUnits = solve::Deadline::kDefaultUnits / 10;

struct Answered {
  PlacementQuestion question;
  solve::Solution solution;

  Bytes saved() const { return solve::bytes_saved(question.problem, solution.placement); }
};

Result<Answered> answer(PlacementQuestion question, const ScratchpadOptions& options) {
  if (const solve::Solution* known = options.known ? options.known->find(question.problem) : nullptr)
    return Answered{std::move(question), *known};
  SPYRE_ASSIGN_OR_RETURN(solve::Solution solution,
                         solve::place(question.problem, options.solver, solve::Deadline(kSolverUnits)));
  const Status legal = solve::validate(question.problem, solution.placement);
  SPYRE_CHECK(legal.ok(), fmt::format("solver '{}': {}", options.solver, legal.error().message));
  if (options.progress) options.progress();
  if (options.known) options.known->add(question.problem, solution);
  return Answered{std::move(question), std::move(solution)};
}

// Who makes and who reads a candidate. Readers of a copy are not readers of its source.
void add_nodes(const Holding& holding, const std::vector<BufferTouch>& touches, int relayout,
               ScratchpadPlan::Entry& entry) {
  const auto add = [](std::vector<int64_t>& nodes, const BufferTouch& touch) {
    const auto node = static_cast<int64_t>(touch.node);
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  };
  const std::vector<Relayout>& relayouts = holding.residency.relayouts;
  if (relayout >= 0) {
    for (const BufferTouch& touch : relayouts[static_cast<size_t>(relayout)].readers)
      add(entry.read_by, touch);
    return;
  }
  for (size_t i = holding.asked.first; i < touches.size() && i <= holding.asked.last; ++i) {
    const BufferTouch& touch = touches[i];
    const bool elsewhere = std::any_of(relayouts.begin(), relayouts.end(), [&](const Relayout& r) {
      return std::any_of(r.readers.begin(), r.readers.end(), [&](const BufferTouch& reader) {
        return reader.node == touch.node && reader.operand == touch.operand;
      });
    });
    if (!elsewhere) add(touch.writes ? entry.made_by : entry.read_by, touch);
  }
}

class PlanMaker {
 public:
  PlanMaker(const Answered& answered, const Graph& graph, const GraphAccess& access)
      : question_(answered.question),
        offsets_(answered.solution.placement.offset),
        graph_(graph),
        access_(access),
        names_(question_.candidates.size()) {}

  std::vector<ScratchpadPlan::Entry> entries() {
    name_what_is_told();
    std::vector<ScratchpadPlan::Entry> entries;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!names_[i].empty()) entries.push_back(entry_of(i));
    }
    return entries;
  }

 private:
  const Holding& holding(size_t i) const { return question_.holdings[question_.candidates[i].holding]; }

  // Of every buffer the holdings that were placed; of one that has none the whole life.
  void name_what_is_told() {
    std::vector<int> placed(graph_.buffers.size(), 0);
    std::vector<size_t> first(graph_.buffers.size(), names_.size());
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto id = static_cast<size_t>(holding(i).buffer);
      if (question_.candidates[i].relayout >= 0) {
        const size_t source = i - 1 - static_cast<size_t>(question_.candidates[i].relayout);
        if (offsets_[i])
          names_[i] = fmt::format("{}#{}", names_[source], question_.candidates[i].relayout + 1);
        continue;
      }
      first[id] = std::min(first[id], i);
      if (!offsets_[i]) continue;
      const std::string& name = graph_.buffers[id].name;
      names_[i] = ++placed[id] == 1 ? name : fmt::format("{}@{}", name, placed[id]);
    }
    for (size_t id = 0; id < first.size(); ++id) {
      if (placed[id] == 0 && first[id] < names_.size()) names_[first[id]] = graph_.buffers[id].name;
    }
  }

  ScratchpadPlan::Entry entry_of(size_t i) const {
    const solve::Buffer& buffer = question_.problem.buffers[i];
    const auto& [id, asked, residency] = holding(i);
    const int relayout = question_.candidates[i].relayout;
    const std::vector<BufferTouch>& touches = access_.touches[static_cast<size_t>(id)];
    ScratchpadPlan::Entry entry{.buffer = names_[i],
                                .first = buffer.live.begin.count() / 2,
                                .last = (buffer.live.end.count() - 1) / 2,
                                .per_core = buffer.size,
                                .address = offsets_[i],
                                .reason = {},
                                .in_place_of = {},
                                .clone = relayout < 0 && residency.clone && offsets_[i].has_value(),
                                .copied_out = relayout < 0 && residency.copied_out,
                                .copy_of = {},
                                .part_of = {},
                                .evicted_after = {},
                                .reloaded_before = {},
                                .saves = offsets_[i] ? buffer.saves : residency.saves,
                                .pays = relayout < 0 ? residency.pays : Bytes(0),
                                .live = buffer.live,
                                .made_by = {},
                                .read_by = {}};
    add_nodes(holding(i), touches, relayout, entry);
    if (relayout >= 0) entry.copy_of = names_[i - 1 - static_cast<size_t>(relayout)];
    if (!offsets_[i]) entry.reason = reason_of(i);
    if (offsets_[i] && relayout < 0) entry.reason = residency.why_off_chip;
    for (const int parent : buffer.in_place_parents) {
      if (offsets_[i] && offsets_[static_cast<size_t>(parent)] == offsets_[i])
        entry.in_place_of = names_[static_cast<size_t>(parent)];
    }
    if (relayout >= 0) return entry;
    if (asked.first > 0) entry.reloaded_before = static_cast<int64_t>(touches[asked.first].node);
    if (asked.last < touches.size() - 1) entry.evicted_after = static_cast<int64_t>(touches[asked.last].node);
    const std::string& name = graph_.buffers[static_cast<size_t>(id)].name;
    if (name != names_[i]) entry.part_of = name;
    return entry;
  }

  // Where copies are part of it, the first of all that could never fit.
  std::string reason_of(size_t source) const {
    std::string reason = solve::spill_reason(question_.problem, static_cast<int>(source));
    for (size_t i = source + 1; i < names_.size() && question_.candidates[i].relayout >= 0; ++i) {
      if (question_.problem.buffers[i].size > question_.problem.capacity)
        reason = solve::spill_reason(question_.problem, static_cast<int>(i));
    }
    return reason;
  }

  const PlacementQuestion& question_;
  const std::vector<std::optional<Bytes>>& offsets_;
  const Graph& graph_;
  const GraphAccess& access_;
  std::vector<std::string> names_;  // by candidate; empty: not told
};

}  // namespace

const solve::Solution* KnownAnswers::find(const solve::Problem& problem) const {
  for (const auto& [asked, solution] : answers_) {
    if (asked == problem) return &solution;
  }
  return nullptr;
}

void KnownAnswers::add(const solve::Problem& problem, const solve::Solution& solution) {
  constexpr size_t kFew = 8;
  if (answers_.size() == kFew) answers_.pop_front();
  answers_.emplace_back(problem, solution);
}

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
  const ResidencyJudge judge(graph, access, rules_of(options));
  std::vector<std::vector<TouchView>> seen;
  for (BufferId id = 0; id < std::ssize(graph.buffers); ++id) seen.push_back(judge.touches_of(id));
  QuestionOptions asked{
      .capacity = options.capacity, .in_place = options.in_place, .evictions = options.evictions};
  SPYRE_ASSIGN_OR_RETURN(Answered best, answer(question_of(graph, access, judge, seen, asked), options));
  int64_t work = best.solution.work;
  solve::Problem problem = best.question.problem;
  bool optimal = best.solution.optimal;
  if (!options.quick && best.saved() < solve::bytes_at_stake(problem)) {
    // Only what finds no room whole is worth asking for in parts.
    asked.full = true;
    PlacementQuestion full = question_of(graph, access, judge, seen, asked);
    if (full.problem != problem) {
      SPYRE_ASSIGN_OR_RETURN(Answered parts, answer(std::move(full), options));
      work += parts.solution.work;
      problem = parts.question.problem;
      optimal = parts.solution.optimal;
      if (parts.saved() > best.saved()) best = std::move(parts);
    }
  }
  ScratchpadPlan plan{.capacity = options.capacity,
                      .solver = options.solver,
                      .optimal = optimal,
                      .work = work,
                      .entries = PlanMaker(best, graph, access).entries(),
                      .nodes = {},
                      .asked = std::move(problem)};
  for (const Node& node : graph.nodes) plan.nodes.push_back(node.name);
  write_places(graph, access, best.question, best.solution.placement);
  return plan;
}

}  // namespace spyre
