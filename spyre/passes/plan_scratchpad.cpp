#include "spyre/passes/plan_scratchpad.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "spyre/arch/machine.h"
#include "spyre/passes/scratchpad/lx_copies.h"
#include "spyre/passes/scratchpad/residency.h"
#include "spyre/solve/solver.h"
#include "spyre/solve/validate.h"

namespace spyre {
namespace {

// A tenth of the solver's default: a plan for a graph of some hundred buffers in tenths of a second.
constexpr int64_t kSolverUnits = solve::Deadline::kDefaultUnits / 10;

// One candidate for LX: a buffer, or a copy of it in another division.
struct Candidate {
  BufferId buffer = -1;
  int relayout = -1;  // index into Residency::relayouts; -1: the buffer itself
};

// The placement problem, and what each of its entries is.
struct Question {
  solve::Problem problem;
  std::vector<Candidate> candidates;
};

// Of a barred buffer the time from its first touch to its last, for the reader of the plan.
solve::Lifetime life_of(const Residency& residency, const std::vector<BufferTouch>& touches) {
  if (residency.barred.empty()) return life_of(residency);
  const auto step = [](const BufferTouch& touch) { return 2 * static_cast<int64_t>(touch.node) + 1; };
  return {solve::Step(step(touches.front())), solve::Step(step(touches.back()) + 1)};
}

// What a plan gains by a buffer, told apart for the buffer and its copies. It takes all of them: half is the
// buffer's, so that a solver does not leave the source of a copy behind.
std::vector<Bytes> shares_of(const Residency& residency) {
  std::vector<Bytes> shares = {residency.saves};
  Bytes copies;
  for (const Relayout& relayout : residency.relayouts) copies += relayout.saves;
  for (const Relayout& relayout : residency.relayouts) {
    const double part = static_cast<double>(relayout.saves.count()) / static_cast<double>(copies.count());
    shares.push_back(Bytes(static_cast<int64_t>(part * static_cast<double>(residency.saves.count()) / 2)));
  }
  for (size_t i = 1; i < shares.size(); ++i) shares.front() -= shares[i];
  return shares;
}

void add_candidates(const Graph& graph, const GraphAccess& access, const Residency& residency, BufferId id,
                    Question& question) {
  const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
  const std::vector<BufferTouch>& touches = access.touches[static_cast<size_t>(id)];
  int64_t nodes = 0;
  for (size_t i = 0; i < touches.size(); ++i) nodes += i == 0 || touches[i].node != touches[i - 1].node;
  const std::vector<Bytes> shares = shares_of(residency);
  const solve::Lifetime life = life_of(residency, touches);
  question.candidates.push_back({id, -1});
  question.problem.buffers.push_back({.name = buffer.name,
                                      .live = life,
                                      .size = std::max(residency.per_core, kStickBytes),
                                      .uses = std::min(nodes, life.length()),
                                      .input = buffer.is_input || buffer.fill.has_value(),
                                      .saves = shares.front(),
                                      .in_place_parents = {},
                                      .fixed = {},
                                      .barred = residency.barred});
  for (size_t i = 0; i < residency.relayouts.size(); ++i) {
    const Relayout& relayout = residency.relayouts[i];
    question.candidates.push_back({id, static_cast<int>(i)});
    question.problem.buffers.push_back(
        {.name = fmt::format("{}#{}", buffer.name, i + 1),
         .live = life_of(relayout),
         .size = std::max(relayout.per_core, kStickBytes),
         .uses = std::min<int64_t>(1 + std::ssize(relayout.readers), life_of(relayout).length()),
         .saves = shares[i + 1],
         .in_place_parents = {},
         .fixed = {},
         .barred = {}});
  }
}

Question question_of(const Graph& graph, const GraphAccess& access, const std::vector<Residency>& residencies,
                     const ScratchpadOptions& options) {
  std::vector<BufferId> order;
  for (BufferId id = 0; id < std::ssize(graph.buffers); ++id) {
    if (!access.touches[static_cast<size_t>(id)].empty()) order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
    return access.touches[static_cast<size_t>(a)].front().node <
           access.touches[static_cast<size_t>(b)].front().node;
  });
  Question question{.problem = {.capacity = options.capacity, .buffers = {}}, .candidates = {}};
  std::vector<int> position(graph.buffers.size(), -1);
  for (const BufferId id : order) {
    position[static_cast<size_t>(id)] = static_cast<int>(question.candidates.size());
    add_candidates(graph, access, residencies[static_cast<size_t>(id)], id, question);
  }
  if (!options.in_place) return question;
  for (const BufferId id : order) {
    for (const BufferId parent : in_place_parents(graph, access, residencies, id)) {
      question.problem.buffers[static_cast<size_t>(position[static_cast<size_t>(id)])]
          .in_place_parents.push_back(position[static_cast<size_t>(parent)]);
    }
  }
  return question;
}

// What the placement leaves half done: a copy without its source, or a source without one of its copies. The
// judge then knows better, and the question is asked again.
bool refuse_incomplete(const Question& question, const solve::Placement& placement,
                       const std::vector<Residency>& residencies, ResidencyJudge& judge) {
  std::map<BufferId, bool> placed;
  for (size_t i = 0; i < question.candidates.size(); ++i) {
    if (question.candidates[i].relayout < 0)
      placed[question.candidates[i].buffer] = placement.offset[i].has_value();
  }
  bool incomplete = false;
  for (size_t i = 0; i < question.candidates.size(); ++i) {
    const auto& [buffer, relayout] = question.candidates[i];
    if (relayout < 0 || (placed[buffer] && placement.offset[i])) continue;
    const Residency& residency = residencies[static_cast<size_t>(buffer)];
    incomplete = true;
    if (placed[buffer]) {
      judge.refuse_relayout(buffer, residency.relayouts[static_cast<size_t>(relayout)].view);
    } else {
      judge.bar(buffer, solve::spill_reason(question.problem, static_cast<int>(i)));
    }
  }
  return incomplete;
}

// Who makes and who reads a candidate. Readers of a copy are not readers of its source.
void add_nodes(const Residency& residency, const std::vector<BufferTouch>& touches, int relayout,
               ScratchpadPlan::Entry& entry) {
  const auto add = [](std::vector<int64_t>& nodes, const BufferTouch& touch) {
    const auto node = static_cast<int64_t>(touch.node);
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  };
  if (relayout >= 0) {
    for (const BufferTouch& touch : residency.relayouts[static_cast<size_t>(relayout)].readers)
      add(entry.read_by, touch);
    return;
  }
  for (const BufferTouch& touch : touches) {
    const bool elsewhere =
        std::any_of(residency.relayouts.begin(), residency.relayouts.end(), [&](const Relayout& r) {
          return std::any_of(r.readers.begin(), r.readers.end(), [&](const BufferTouch& reader) {
            return reader.node == touch.node && reader.operand == touch.operand;
          });
        });
    if (!elsewhere) add(touch.writes ? entry.made_by : entry.read_by, touch);
  }
}

ScratchpadPlan plan_of(const Question& question, const solve::Solution& solution,
                       const std::vector<Residency>& residencies, const Graph& graph,
                       const GraphAccess& access, const ScratchpadOptions& options) {
  ScratchpadPlan plan{.capacity = options.capacity,
                      .solver = options.solver,
                      .optimal = solution.optimal,
                      .entries = {},
                      .nodes = {},
                      .asked = {}};
  for (const Node& node : graph.nodes) plan.nodes.push_back(node.name);
  const auto& offsets = solution.placement.offset;
  for (size_t i = 0; i < question.candidates.size(); ++i) {
    const solve::Buffer& buffer = question.problem.buffers[i];
    const auto& [id, relayout] = question.candidates[i];
    const Residency& residency = residencies[static_cast<size_t>(id)];
    ScratchpadPlan::Entry entry{.buffer = buffer.name,
                                .first = buffer.live.begin.count() / 2,
                                .last = (buffer.live.end.count() - 1) / 2,
                                .per_core = buffer.size,
                                .address = offsets[i],
                                .reason = {},
                                .in_place_of = {},
                                .clone = relayout < 0 && buffer.input && offsets[i].has_value(),
                                .copied_out = relayout < 0 && residency.copied_out,
                                .copy_of = {},
                                .saves = buffer.saves,
                                .live = buffer.live,
                                .made_by = {},
                                .read_by = {}};
    add_nodes(residency, access.touches[static_cast<size_t>(id)], relayout, entry);
    if (relayout >= 0) entry.copy_of = graph.buffers[static_cast<size_t>(id)].name;
    if (!offsets[i]) entry.reason = solve::spill_reason(question.problem, static_cast<int>(i));
    if (offsets[i] && relayout < 0) entry.reason = residency.why_off_chip;
    for (const int parent : buffer.in_place_parents) {
      if (offsets[i] && offsets[static_cast<size_t>(parent)] == offsets[i])
        entry.in_place_of = question.problem.buffers[static_cast<size_t>(parent)].name;
    }
    plan.entries.push_back(std::move(entry));
  }
  return plan;
}

// Writes a placement into the graph: places, copies, and who reads which copy.
class PlaceWriter {
 public:
  PlaceWriter(Graph& graph, const GraphAccess& access) : graph_(graph), access_(access) {}

  void add(BufferId id, const Residency& residency, Bytes address, const std::vector<Bytes>& copies) {
    const BufferPlace place{BufferPlace::Kind::kLx, address.count()};
    basis_ = whole_touch(graph_, access_, id);
    BufferId source = id;
    if (residency.clone || residency.copied_out) {
      source = twin(id, place);
      for (const BufferTouch& touch : residency.direct) redirect(touch, source);
    } else {
      graph_.buffers[static_cast<size_t>(id)].place = place;
    }
    size_t first = std::numeric_limits<size_t>::max(), last_write = 0;
    for (const BufferTouch& touch : residency.direct) {
      first = std::min(first, touch.node);
      if (touch.writes) last_write = touch.node;
    }
    for (const Relayout& relayout : residency.relayouts)
      first = std::min(first, relayout.readers.front().node);
    if (residency.clone) insert(first, 1, id, source, residency.view, residency.view);
    if (residency.copied_out) insert(last_write + 1, 0, source, id, residency.view, residency.view);
    for (size_t i = 0; i < residency.relayouts.size(); ++i) {
      const Relayout& relayout = residency.relayouts[i];
      const BufferId copy = twin(id, {BufferPlace::Kind::kLx, copies[i].count()});
      for (const BufferTouch& touch : relayout.readers) redirect(touch, copy);
      insert(relayout.readers.front().node, 2, source, copy, residency.view, relayout.view);
    }
  }

  void finish() {
    std::stable_sort(inserts_.begin(), inserts_.end(), [](const Insert& a, const Insert& b) {
      return std::pair(a.before, a.rank) < std::pair(b.before, b.rank);
    });
    for (const auto& [touch, buffer] : redirects_) rewrite(touch, buffer);
    for (auto insert = inserts_.rbegin(); insert != inserts_.rend(); ++insert) {
      graph_.nodes.insert(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(insert->before),
                          std::move(insert->node));
    }
  }

 private:
  struct Insert {
    size_t before;  // in the order of nodes before any was inserted
    int rank;       // among those before the same node: copies out, copies in, shuffles
    Node node;
  };

  BufferId twin(BufferId id, BufferPlace place) {
    Buffer buffer = graph_.buffers[static_cast<size_t>(id)];
    buffer.name += "_lx";
    buffer.is_input = false;
    buffer.offset = buffer.storage = 0;
    buffer.place = place;
    return graph_.add_buffer(std::move(buffer));
  }

  void redirect(const BufferTouch& touch, BufferId buffer) { redirects_.emplace_back(touch, buffer); }

  void insert(size_t before, int rank, BufferId from, BufferId to, const CoreView& from_view,
              const CoreView& to_view) {
    auto node = copy_node(graph_, access_, *basis_, from, to, from_view, to_view);
    SPYRE_CHECK(node.has_value(), "a planned copy can be divided");
    node->bundle = graph_.nodes[rank == 0 ? before - 1 : before].bundle;  // with whom it is made for
    inserts_.push_back({before, rank, *std::move(node)});
  }

  void rewrite(const BufferTouch& touch, BufferId buffer) {
    Node& node = graph_.nodes[touch.node];
    DeviceOp op = device_op(node);
    const HostType dtype = node.body[static_cast<size_t>(node.result)].dtype;
    if (touch.writes) {
      op.output.buffer = buffer;
    } else {
      op.inputs[touch.operand - op.indices.size()].buffer = buffer;
    }
    set_device_op(graph_, node, op, dtype);
  }

  Graph& graph_;
  const GraphAccess& access_;
  const BufferTouch* basis_ = nullptr;  // of the buffer being added
  std::vector<Insert> inserts_;
  std::vector<std::pair<BufferTouch, BufferId>> redirects_;
};

void write_places(Graph& graph, const GraphAccess& access, const Question& question,
                  const solve::Placement& placement, const std::vector<Residency>& residencies) {
  PlaceWriter writer(graph, access);
  for (size_t i = 0; i < question.candidates.size(); ++i) {
    const auto& [id, relayout] = question.candidates[i];
    if (relayout >= 0 || !placement.offset[i]) continue;
    const Residency& residency = residencies[static_cast<size_t>(id)];
    std::vector<Bytes> copies;
    for (size_t r = 0; r < residency.relayouts.size(); ++r) copies.push_back(*placement.offset[i + 1 + r]);
    writer.add(id, residency, *placement.offset[i], copies);
  }
  writer.finish();
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
  ResidencyJudge judge(graph, access,
                       {.clone_inputs = options.clone_inputs,
                        .copy_out = options.copy_out,
                        .relayouts = options.relayouts,
                        .across_bundles = options.across_bundles});
  std::vector<Residency> residencies;
  Question question;
  solve::Solution solution;
  std::optional<solve::Problem> asked;
  int64_t work = 0;
  bool asking = true;
  while (asking) {  // ends: each round takes a relayout or a buffer out of the question
    residencies.clear();
    for (BufferId id = 0; id < std::ssize(graph.buffers); ++id) {
      residencies.push_back(judge.judge(id, judge.touches_of(id)));
    }
    question = question_of(graph, access, residencies, options);
    if (!asked) asked = question.problem;
    SPYRE_ASSIGN_OR_RETURN(solution,
                           solve::place(question.problem, options.solver, solve::Deadline(kSolverUnits)));
    const Status legal = solve::validate(question.problem, solution.placement);
    SPYRE_CHECK(legal.ok(), fmt::format("solver '{}': {}", options.solver, legal.error().message));
    work += solution.work;
    if (options.progress) options.progress();
    asking = refuse_incomplete(question, solution.placement, residencies, judge);
  }
  ScratchpadPlan plan = plan_of(question, solution, residencies, graph, access, options);
  plan.optimal = solution.optimal && *asked == question.problem;  // a later question left buffers out
  plan.asked = *std::move(asked);
  plan.work = work;
  write_places(graph, access, question, solution.placement, residencies);
  return plan;
}

}  // namespace spyre
