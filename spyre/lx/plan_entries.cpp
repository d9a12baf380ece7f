#include "spyre/lx/plan_entries.h"

#include <fmt/format.h>

#include <algorithm>

namespace spyre::lx {
namespace {

// Who makes and who reads a candidate. Readers of a copy are not readers of its source.
void add_nodes(const Holding& holding, const std::vector<BufferTouch>& touches, int relayout,
               Plan::Entry& entry) {
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
  for (size_t i = holding.request.first; i < touches.size() && i <= holding.request.last; ++i) {
    const BufferTouch& touch = touches[i];
    const bool elsewhere = std::any_of(relayouts.begin(), relayouts.end(), [&](const Relayout& r) {
      return std::any_of(r.readers.begin(), r.readers.end(), [&](const BufferTouch& reader) {
        return reader.node == touch.node && reader.operand == touch.operand;
      });
    });
    if (!elsewhere) add(touch.writes ? entry.made_by : entry.read_by, touch);
  }
}

class EntryMaker {
 public:
  EntryMaker(const Analysis& analysis, const AllocationProblem& allocation, const solve::Placement& placement)
      : allocation_(allocation),
        offsets_(placement.offset),
        graph_(analysis.graph()),
        analysis_(analysis),
        names_(allocation_.candidates.size()) {}

  std::vector<Plan::Entry> run() {
    name_what_is_told();
    std::vector<Plan::Entry> entries;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!names_[i].empty()) entries.push_back(entry_of(i));
    }
    return entries;
  }

 private:
  const Holding& holding(size_t i) const { return allocation_.holdings[allocation_.candidates[i].holding]; }

  // Of every buffer the holdings that were placed; of one that has none the whole live range. Names count what was placed
  // (x, x@2), not what was offered; a copy is numbered within its holding (x#1).
  void name_what_is_told() {
    std::vector<int> placed(graph_.buffers.size(), 0);
    std::vector<size_t> first(graph_.buffers.size(), names_.size());
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto id = static_cast<size_t>(holding(i).buffer);
      if (allocation_.candidates[i].relayout >= 0) {
        const size_t source = i - 1 - static_cast<size_t>(allocation_.candidates[i].relayout);
        if (offsets_[i])
          names_[i] = fmt::format("{}#{}", names_[source], allocation_.candidates[i].relayout + 1);
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

  Plan::Entry entry_of(size_t i) const {
    const solve::Buffer& buffer = allocation_.problem.buffers[i];
    const auto& [id, request, residency] = holding(i);
    const int relayout = allocation_.candidates[i].relayout;
    const std::vector<BufferTouch>& touches = analysis_.touches(id);
    Plan::Entry entry{.buffer = names_[i],
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
    if (request.first > 0) entry.reloaded_before = static_cast<int64_t>(touches[request.first].node);
    if (request.last < touches.size() - 1)
      entry.evicted_after = static_cast<int64_t>(touches[request.last].node);
    const std::string& name = graph_.buffers[static_cast<size_t>(id)].name;
    if (name != names_[i]) entry.part_of = name;
    return entry;
  }

  // Where copies are part of it, the first of all that could never fit.
  std::string reason_of(size_t source) const {
    std::string reason = solve::spill_reason(allocation_.problem, static_cast<int>(source));
    for (size_t i = source + 1; i < names_.size() && allocation_.candidates[i].relayout >= 0; ++i) {
      if (allocation_.problem.buffers[i].size > allocation_.problem.capacity)
        reason = solve::spill_reason(allocation_.problem, static_cast<int>(i));
    }
    return reason;
  }

  const AllocationProblem& allocation_;
  const std::vector<std::optional<Bytes>>& offsets_;
  const DeviceGraph& graph_;
  const Analysis& analysis_;
  std::vector<std::string> names_;  // by candidate; empty: not told
};

}  // namespace

std::vector<Plan::Entry> plan_entries(const Analysis& analysis, const AllocationProblem& allocation,
                                      const solve::Placement& placement) {
  return EntryMaker(analysis, allocation, placement).run();
}

}  // namespace spyre::lx
