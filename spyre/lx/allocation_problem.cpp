#include "spyre/lx/allocation_problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/lx/in_place.h"

namespace spyre::lx {
namespace {

constexpr size_t kMostIdleGaps = 4;   // of one buffer that are considered: 14 segments at most
constexpr size_t kMostRingViews = 3;  // with more, subsets of what the ring serves are not all tried

// Of an ineligible buffer the time from its first touch to its last, for the reader of the plan.
solve::Lifetime shown_life(const Residency& residency, const std::vector<BufferTouch>& touches) {
  if (residency.ineligible.empty()) return life_of(residency);
  const auto step = [](const BufferTouch& touch) { return 2 * static_cast<int64_t>(touch.node) + 1; };
  return {solve::Step(step(touches.front())), solve::Step(step(touches.back()) + 1)};
}

// What a plan gains by a holding, told apart for the buffer and its copies. It takes all of them: half is the
// buffer's, so that a solver that looks at one after the other does not leave the source of a copy behind.
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

// The touches after which nothing happens to a buffer for at least one node: the longest idle gaps, in order.
std::vector<size_t> idle_gaps(const std::vector<BufferTouch>& touches) {
  std::vector<std::pair<size_t, size_t>> gaps;  // idle nodes, touch before them
  for (size_t i = 1; i < touches.size(); ++i) {
    const size_t apart = touches[i].node - touches[i - 1].node;
    if (apart > 1) gaps.emplace_back(apart - 1, i - 1);
  }
  std::stable_sort(gaps.begin(), gaps.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (gaps.size() > kMostIdleGaps) gaps.resize(kMostIdleGaps);
  std::vector<size_t> before;
  for (const auto& gap : gaps) before.push_back(gap.second);
  std::sort(before.begin(), before.end());
  return before;
}

class ProblemBuilder {
 public:
  ProblemBuilder(const Analysis& analysis, const AllocationOptions& options)
      : graph_(analysis.graph()), analysis_(analysis), options_(options) {
    allocation_.problem.capacity = options.capacity;
  }

  AllocationProblem build() {
    for (const BufferId id : by_first_touch()) {
      const size_t first = allocation_.holdings.size();
      hold(id, {});
      if (options_.full && allocation_.holdings.back().residency.ineligible.empty()) hold_otherwise(id);
      const bool choice = allocation_.holdings.size() > first + 1;
      for (size_t h = first; h < allocation_.holdings.size(); ++h)
        add_candidates(h, h - first, choice ? id : -1);
    }
    if (analysis_.moves().allows(Move::kTakeOverSlot)) add_parents();
    return std::move(allocation_);
  }

 private:
  const std::vector<BufferTouch>& touches(BufferId id) const { return analysis_.touches(id); }

  std::vector<BufferId> by_first_touch() const {
    std::vector<BufferId> order;
    for (BufferId id = 0; id < std::ssize(graph_.buffers); ++id) {
      if (!touches(id).empty()) order.push_back(id);
    }
    std::stable_sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
      return touches(a).front().node < touches(b).front().node;
    });
    return order;
  }

  void hold(BufferId id, HoldRequest request) {
    Residency residency = residency_of(analysis_, id, analysis_.views(id), request);
    allocation_.holdings.push_back({id, std::move(request), std::move(residency)});
  }

  // The last holding again, with fewer readers served over the ring: some subset of the views. Each view is a copy that
  // needs room of its own, so leaving one out may be what lets the buffer itself in.
  void hold_with_less_ring() {
    const Holding full = allocation_.holdings.back();
    const std::vector<Relayout>& relayouts = full.residency.relayouts;
    if (relayouts.empty()) return;
    const size_t views = relayouts.size();
    std::vector<std::vector<bool>> refusals = {std::vector<bool>(views, true)};
    if (views <= kMostRingViews) {
      for (size_t set = 1; set + 1 < (size_t{1} << views); ++set) {
        std::vector<bool> refused(views);
        for (size_t v = 0; v < views; ++v) refused[v] = (set >> v & 1) != 0;
        refusals.push_back(std::move(refused));
      }
    }
    for (const std::vector<bool>& refused : refusals) {
      HoldRequest request = full.request;
      for (size_t v = 0; v < views; ++v) {
        if (refused[v]) request.off_ring.push_back(analysis_.intern(relayouts[v].view));
      }
      hold(full.buffer, std::move(request));
      drop_last_if_ineligible();
    }
  }

  void drop_last_if_ineligible() {
    if (!allocation_.holdings.back().residency.ineligible.empty()) allocation_.holdings.pop_back();
  }

  // Between any two of its idle gaps, and before the first and behind the last, a buffer may be held by itself.
  void hold_otherwise(BufferId id) {
    hold_with_less_ring();
    if (!analysis_.moves().allows(Move::kEvict)) return;
    const std::vector<size_t> gaps = idle_gaps(touches(id));
    for (size_t from = 0; from <= gaps.size(); ++from) {
      for (size_t to = from; to <= gaps.size(); ++to) {
        if (from == 0 && to == gaps.size()) continue;  // the whole life
        HoldRequest request;
        request.first = from == 0 ? 0 : gaps[from - 1] + 1;
        request.last = to == gaps.size() ? touches(id).size() - 1 : gaps[to];
        hold(id, std::move(request));
        if (allocation_.holdings.back().residency.ineligible.empty()) {
          hold_with_less_ring();
        } else {
          allocation_.holdings.pop_back();
        }
      }
    }
  }

  void add_candidates(size_t h, size_t number, int tensor) {
    const auto& [id, request, residency] = allocation_.holdings[h];
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(id)];
    const size_t end = std::min(request.last, touches(id).size() - 1) + 1;
    int64_t nodes = 0;
    for (size_t i = request.first; i < end; ++i)
      nodes += i == request.first || touches(id)[i].node != touches(id)[i - 1].node;
    const std::vector<Bytes> shares = shares_of(residency);
    // The holdings of one buffer are one tensor, of which a solver places one at any step; a holding and its copies are
    // a group, numbered by the holding.
    const solve::Lifetime life = shown_life(residency, touches(id));
    const int group = residency.relayouts.empty() ? -1 : static_cast<int>(h);
    const std::string name = number == 0 ? buffer.name : fmt::format("{}@{}", buffer.name, number);
    allocation_.candidates.push_back({h, -1});
    allocation_.problem.buffers.push_back({.name = name,
                                           .live = life,
                                           .size = std::max(residency.per_core, kStickBytes),
                                           .uses = std::min(nodes, life.length()),
                                           .input = residency.clone || buffer.fill.has_value(),
                                           .saves = shares.front(),
                                           .in_place_parents = {},
                                           .fixed = {},
                                           .ineligible = residency.ineligible,
                                           .tensor = tensor,
                                           .group = group});
    for (size_t i = 0; i < residency.relayouts.size(); ++i) {
      const Relayout& relayout = residency.relayouts[i];
      allocation_.candidates.push_back({h, static_cast<int>(i)});
      allocation_.problem.buffers.push_back(
          {.name = fmt::format("{}#{}", name, i + 1),
           .live = life_of(relayout),
           .size = std::max(relayout.per_core, kStickBytes),
           .uses = std::min<int64_t>(1 + std::ssize(relayout.readers), life_of(relayout).length()),
           .saves = shares[i + 1],
           .in_place_parents = {},
           .fixed = {},
           .ineligible = {},
           .tensor = tensor,
           .group = group});
    }
  }

  // Children in the order of candidates, their parents in operand order.
  void add_parents() {
    std::vector<std::vector<size_t>> sources(graph_.buffers.size());  // positions in the problem, by buffer
    for (size_t i = 0; i < allocation_.candidates.size(); ++i) {
      const Candidate& candidate = allocation_.candidates[i];
      if (candidate.relayout < 0)
        sources[static_cast<size_t>(allocation_.holdings[candidate.holding].buffer)].push_back(i);
    }
    for (size_t i = 0; i < allocation_.candidates.size(); ++i) {
      const Candidate& candidate = allocation_.candidates[i];
      const Holding& child = allocation_.holdings[candidate.holding];
      if (candidate.relayout >= 0 || child.residency.clone || !child.residency.ineligible.empty()) continue;
      std::vector<int>& parents = allocation_.problem.buffers[i].in_place_parents;
      const NormalOp& op = analysis_.access().ops[touches(child.buffer).front().node];
      for (const Access& input : op.op.inputs) {
        for (const size_t p : sources[static_cast<size_t>(input.buffer)]) {
          const bool known = std::find(parents.begin(), parents.end(), static_cast<int>(p)) != parents.end();
          const Holding& parent = allocation_.holdings[allocation_.candidates[p].holding];
          if (!known && may_take_over(analysis_, child, parent)) parents.push_back(static_cast<int>(p));
        }
      }
    }
  }

  const DeviceGraph& graph_;
  const Analysis& analysis_;
  const AllocationOptions options_;
  AllocationProblem allocation_;
};

}  // namespace

AllocationProblem allocation_problem(const Analysis& analysis, const AllocationOptions& options) {
  return ProblemBuilder(analysis, options).build();
}

}  // namespace spyre::lx
