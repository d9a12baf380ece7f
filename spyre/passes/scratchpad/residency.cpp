#include "spyre/passes/scratchpad/residency.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "spyre/graph/core_map.h"
#include "spyre/ops/ops.h"
#include "spyre/passes/plan_scratchpad.h"
#include "spyre/passes/scratchpad/lx_copies.h"

namespace spyre {
namespace {

size_t at(BufferId id) {
  return static_cast<size_t>(id);
}

// Where a turned dimension ends inside a stick, the rest of that stick is left as it was; in LX that may be
// anything.
bool turns_part_of_stick(const NormalOp& op) {
  return std::any_of(op.access.operands.begin(), op.access.operands.end(), [&](const DeviceAccess& access) {
    return access.lane < 0 || op.access.loops[static_cast<size_t>(access.lane)].extent % access.lanes != 0;
  });
}

bool same_walk(const DeviceAccess& a, const DeviceAccess& b) {
  return a.dims == b.dims && a.lane == b.lane && a.lanes == b.lanes;
}

bool whole_storage(const Buffer& buffer) {
  return buffer.offset == 0 && (buffer.storage == 0 || buffer.storage == buffer.elements());
}

int64_t step_of(const BufferTouch& touch) {
  return 2 * static_cast<int64_t>(touch.node) + 1;
}

// Whether nodes know its memory as different elements: what a core holds of it then depends on the name.
bool has_two_names(const Graph& graph, BufferId id) {
  const auto names_it = [&](const Buffer& buffer) { return buffer.memory_of == id; };
  return graph.buffers[at(id)].memory_of >= 0 ||
         std::any_of(graph.buffers.begin(), graph.buffers.end(), names_it);
}

}  // namespace

solve::Lifetime life_of(const Residency& residency) {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0, last_write = -1;
  for (const BufferTouch& touch : residency.direct) {
    begin = std::min(begin, step_of(touch) - (residency.clone ? 1 : 0));
    end = std::max(end, step_of(touch));
    if (touch.writes) last_write = step_of(touch);
  }
  for (const Relayout& relayout : residency.relayouts) {
    begin = std::min(begin, step_of(relayout.readers.front()) - 1);
    end = std::max(end, step_of(relayout.readers.front()) - 1);
  }
  if (residency.copied_out) end = std::max(end, last_write + 1);
  return {solve::Step(begin), solve::Step(end + 1)};
}

solve::Lifetime life_of(const Relayout& relayout) {
  return {solve::Step(step_of(relayout.readers.front()) - 1),
          solve::Step(step_of(relayout.readers.back()) + 1)};
}

bool ResidencyJudge::ViewOrder::operator()(const CoreView& a, const CoreView& b) const {
  const auto run_key = [](const StickRun& run) { return std::pair(run.stride, run.count); };
  if (a.first != b.first) return a.first < b.first;
  return std::lexicographical_compare(
      a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(),
      [&](const StickRun& x, const StickRun& y) { return run_key(x) < run_key(y); });
}

ResidencyJudge::ResidencyJudge(const Graph& graph, const GraphAccess& access, const ResidencyRules& rules)
    : graph_(graph), access_(access), rules_(rules) {
  for (const NormalOp& op : access.ops) most_cores_ = std::max(most_cores_, cores_used(op.access.loops));
  for (BufferId id = 0; id < std::ssize(graph.buffers); ++id) {
    if (std::string reason = bar_of(id); !reason.empty()) bars_[id] = std::move(reason);
  }
}

ResidencyRules rules_of(const ScratchpadOptions& options) {
  return {.clone_inputs = options.clone_inputs,
          .copy_out = options.copy_out,
          .relayouts = options.relayouts,
          .across_bundles = options.across_bundles};
}

const CoreView* ResidencyJudge::intern(const CoreView& view) const {
  return &*views_.insert(view).first;
}

TouchView ResidencyJudge::view_of(const NormalOp& op, size_t operand,
                                  std::span<const DeviceLayout* const> layouts) const {
  TouchView seen{.moved = kStickBytes * sticks_moved(op, operand, layouts)};
  const ViewOrReason view = core_view(op, operand, layouts);
  if (const auto* found = std::get_if<CoreView>(&view)) {
    seen.view = intern(*found);
  } else {
    seen.reason = "partial or offset access";
  }
  return seen;
}

std::vector<TouchView> ResidencyJudge::touches_of(BufferId buffer) const {
  std::vector<TouchView> touches;
  for (const BufferTouch& touch : access_.touches[at(buffer)]) {
    touches.push_back(view_of(access_.ops[touch.node], touch.operand, access_.layouts[touch.node]));
  }
  return touches;
}

// What bars a buffer however the work is divided.
std::string ResidencyJudge::bar_of(BufferId id) const {
  const Buffer& buffer = graph_.buffers[at(id)];
  const std::vector<BufferTouch>& touches = access_.touches[at(id)];
  const auto writes = std::count_if(touches.begin(), touches.end(), [](const auto& t) { return t.writes; });
  const int64_t reads = std::ssize(touches) - writes;
  if (touches.empty()) return "not touched";
  if (buffer.elements() == 0) return "empty tensor";
  if (buffer.fill) return "constant";
  if (has_two_names(graph_, id)) return "two names";
  if (buffer.is_input && writes > 0) return "mutation target";
  if (buffer.is_input && !rules_.clone_inputs) return "graph input";
  if (buffer.is_input && !whole_storage(buffer)) return "partial or offset access";
  if (!buffer.is_input && reads == 0) return graph_.is_result(id) ? "graph output" : "no consumer";
  if (graph_.is_result(id) && !rules_.copy_out) return "graph output";
  for (const BufferTouch& touch : touches) {
    if (access_.ops[touch.node].access.indices.empty()) {
      return fmt::format("turned from a woven stick by '{}'", graph_.nodes[touch.node].name);
    }
    if (std::string reason = touch.writes ? bar_of(touch) : ""; !reason.empty()) return reason;
  }
  return "";
}

// What keeps one node from touching the buffer in LX however its work is divided.
std::string ResidencyJudge::bar_of(const BufferTouch& touch) const {
  const NormalOp& op = access_.ops[touch.node];
  const std::string& node = graph_.nodes[touch.node].name;
  if (touch.operand < op.index_count()) return "index tensor or indirectly accessed";
  if (touch.writes && is_restickify(op) && turns_part_of_stick(op))
    return fmt::format("padding left by restickify '{}'", node);
  // Whole blocks that a core turns by itself are as good in LX; a view says whether they are.
  if (!touch.writes && is_restickify(op) && (!rules_.relayouts || turns_part_of_stick(op)))
    return fmt::format("read by restickify '{}'", node);
  const std::vector<AccessDim>& dims = access_.access(touch).dims;
  if (std::any_of(dims.begin(), dims.end(), [](const AccessDim& d) { return !d.indirect.empty(); }))
    return "index tensor or indirectly accessed";
  return "";
}

// Equal views: every core copies its own part. Different ones: a shuffle.
bool ResidencyJudge::can_copy(BufferId id, const CoreView& from, const CoreView& to) const {
  if (&from == &to && from.shared()) return false;
  return can_divide_copy(id, from) && can_divide_copy(id, to);
}

// Whether a copy of the whole buffer can be divided so that every core has the part that this view gives it.
bool ResidencyJudge::can_divide_copy(BufferId id, const CoreView& view) const {
  const auto [known, fresh] = copies_.try_emplace(std::pair(id, &view), false);
  if (!fresh) return known->second;
  const auto [model, asked] = copy_models_.try_emplace(id);
  if (asked) {
    const BufferTouch* basis = whole_touch(graph_, access_, id);
    if (basis != nullptr) model->second = model_of_copy(graph_, access_, *basis, id);
  }
  known->second = model->second && has_view(*model->second, *graph_.buffers[at(id)].layout, view);
  return known->second;
}

// Who fetches a buffer from device memory: the cores of the reader that moves most of it without sharing,
// else all of them.
const CoreView* ResidencyJudge::fetched_origin(BufferId id, std::span<const TouchView> touches,
                                               const Asked& asked, std::optional<int64_t> home) const {
  const CoreView* origin = nullptr;
  Bytes most;
  const TouchView* widest = nullptr;
  for (size_t i = asked.first; i < touches.size() && i <= asked.last; ++i) {
    const TouchView& touch = touches[i];
    const BufferTouch& where = access_.touches[at(id)][i];
    if (touch.view == nullptr || !bar_of(where).empty() || elsewhere(where, home)) continue;
    if (widest == nullptr || touch.view->cores() > widest->view->cores()) widest = &touch;
    if (touch.view->shared() || (origin != nullptr && touch.moved <= most)) continue;
    origin = touch.view;
    most = touch.moved;
  }
  const BufferTouch* basis = whole_touch(graph_, access_, id);
  if (origin != nullptr || basis == nullptr || widest == nullptr) return origin;
  for (int64_t cores = most_cores_; cores > 0; --cores) {
    if (const auto spread = spread_view(graph_, access_, *basis, id, cores)) return intern(*spread);
  }
  return origin;
}

bool ResidencyJudge::elsewhere(const BufferTouch& touch, std::optional<int64_t> home) const {
  return home && graph_.nodes[touch.node].bundle != *home;
}

// Where LX keeps nothing across bundles, the only one in which what is asked for can be there: the one that
// makes the buffer, or, where it is fetched, the one that reads most of it.
std::optional<int64_t> ResidencyJudge::home_bundle(BufferId id, std::span<const TouchView> seen,
                                                   const Asked& asked) const {
  if (rules_.across_bundles) return std::nullopt;
  const std::vector<BufferTouch>& touches = access_.touches[at(id)];
  const auto bundle = [&](const BufferTouch& touch) { return graph_.nodes[touch.node].bundle; };
  if (!graph_.buffers[at(id)].is_input && asked.first == 0) return bundle(touches.front());
  std::map<int64_t, Bytes> moved;
  for (size_t i = asked.first; i < touches.size() && i <= asked.last; ++i)
    moved[bundle(touches[i])] += seen[i].moved;
  return std::max_element(moved.begin(), moved.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

Residency ResidencyJudge::judge(BufferId id, std::span<const TouchView> seen, const Asked& asked) const {
  const Buffer& buffer = graph_.buffers[at(id)];
  const std::vector<BufferTouch>& touches = access_.touches[at(id)];
  const bool fetched = buffer.is_input || asked.first > 0;
  const size_t end = std::min(asked.last, touches.size() - 1) + 1;
  const bool given_up = !touches.empty() && end < touches.size();
  Residency residency{.clone = fetched};
  const Bytes whole = buffer.layout ? buffer.layout->byte_size().value() : Bytes(0);
  residency.per_core = whole;
  const auto bar = [&](std::string reason) {
    residency.barred = std::move(reason);
    residency.direct.clear(), residency.relayouts.clear(), residency.off_chip.clear();
    residency.per_core = whole;
    residency.saves = residency.pays = Bytes(0);
    return residency;
  };
  if (const auto barred = bars_.find(id); barred != bars_.end()) return bar(barred->second);

  const std::optional<int64_t> home = home_bundle(id, seen, asked);
  const CoreView* origin = fetched ? fetched_origin(id, seen, asked, home) : nullptr;
  size_t last_write = 0;
  Bytes written, saved;
  for (size_t i = 0; i < touches.size(); ++i) {
    if (!touches[i].writes) continue;
    const std::string& node = graph_.nodes[touches[i].node].name;
    last_write = touches[i].node;
    if (fetched ? i >= asked.first : i >= end) return bar(fmt::format("written by '{}' meanwhile", node));
    if (fetched) continue;
    if (elsewhere(touches[i], home)) return bar(fmt::format("written in another bundle by '{}'", node));
    if (seen[i].view == nullptr) return bar(fmt::format("{} in '{}'", seen[i].reason, node));
    if (origin != nullptr && origin != seen[i].view) {
      return bar(fmt::format("core division mismatch: {}, {} in '{}'", origin->to_string(),
                             seen[i].view->to_string(), node));
    }
    origin = seen[i].view;
    written += seen[i].moved;
  }
  if (origin == nullptr) return bar("partial or offset access");

  const auto leave = [&](const BufferTouch& touch, std::string reason) {
    if (residency.off_chip.empty()) residency.why_off_chip = std::move(reason);
    residency.off_chip.push_back(touch);
  };
  for (size_t i = asked.first; i < end; ++i) {
    const BufferTouch& touch = touches[i];
    const std::string& node = graph_.nodes[touch.node].name;
    if (touch.writes) {
      residency.direct.push_back(touch);
      continue;
    }
    const bool on_ring =
        std::find(asked.off_ring.begin(), asked.off_ring.end(), seen[i].view) == asked.off_ring.end();
    bool direct = false;
    if (std::string reason = bar_of(touch); !reason.empty()) {
      leave(touch, std::move(reason));
    } else if (elsewhere(touch, home)) {
      leave(touch, fmt::format("read in another bundle by '{}'", node));
    } else if (seen[i].view == nullptr) {
      leave(touch, fmt::format("{} in '{}'", seen[i].reason, node));
    } else if (seen[i].view == origin) {
      residency.direct.push_back(touch);
      saved += seen[i].moved;
      direct = true;
    } else if (!rules_.relayouts || !on_ring || !can_copy(id, *origin, *seen[i].view)) {
      leave(touch, fmt::format("core division mismatch: {} where it is made, {} in '{}'", origin->to_string(),
                               seen[i].view->to_string(), node));
    } else {
      auto relayout = std::find_if(residency.relayouts.begin(), residency.relayouts.end(),
                                   [&](const Relayout& r) { return r.view == *seen[i].view; });
      if (relayout == residency.relayouts.end()) {
        residency.relayouts.push_back({.view = *seen[i].view,
                                       .readers = {},
                                       .per_core = kStickBytes * seen[i].view->sticks(),
                                       .saves = Bytes(0)});
        relayout = residency.relayouts.end() - 1;
      }
      relayout->readers.push_back(touch);
      relayout->saves += seen[i].moved;
      saved += seen[i].moved;
    }
    // A copy, in or out or on the ring, is made of the whole buffer.
    const bool copied = !direct || given_up || fetched;
    if (!buffer.is_input && copied && touch.node <= last_write)
      return bar(fmt::format("read by '{}' before it is all written", node));
  }
  residency.copied_out = !fetched && (given_up || graph_.is_result(id) || !residency.off_chip.empty());
  const bool out_possible = rules_.copy_out && !origin->shared() && can_copy(id, *origin, *origin);
  if (residency.copied_out && !out_possible)
    return bar(residency.off_chip.empty() ? "graph output" : residency.why_off_chip);
  if (fetched && (!rules_.clone_inputs || !can_copy(id, *origin, *origin)))
    return bar("partial or offset access");
  residency.saves = fetched || residency.copied_out ? saved : saved + written;
  residency.pays = fetched || residency.copied_out ? whole : Bytes(0);
  if (fetched) {
    if (saved <= whole) {
      const bool served = !residency.direct.empty() || !residency.relayouts.empty();
      return bar(served || residency.off_chip.empty() ? "graph input, read once" : residency.why_off_chip);
    }
    residency.saves = saved - whole;
  } else if (residency.saves == Bytes(0)) {
    return bar(residency.off_chip.empty() ? "no consumer" : residency.why_off_chip);
  }
  residency.view = *origin;
  residency.per_core = kStickBytes * origin->sticks();
  return residency;
}

bool lies_alike(const Graph& graph, const GraphAccess& access, const Holding& child, const Holding& parent) {
  const Residency &own = child.residency, &theirs = parent.residency;
  if (!own.barred.empty() || own.clone || !theirs.barred.empty() || parent.buffer == child.buffer)
    return false;
  const BufferTouch& write = access.touches[at(child.buffer)].front();
  const NormalOp& op = access.ops[write.node];
  const OpInfo* info = find_op(op.op.op);
  if (info == nullptr || !info->in_place || theirs.view != own.view) return false;
  const bool read = std::any_of(theirs.direct.begin(), theirs.direct.end(), [&](const BufferTouch& use) {
    return use.node == write.node && !use.writes;
  });
  if (!read || *graph.buffers[at(parent.buffer)].layout != *graph.buffers[at(child.buffer)].layout)
    return false;
  // All of the child is written here, over parts that are not read afterwards.
  const std::vector<BufferTouch>& touches = access.touches[at(parent.buffer)];
  return std::none_of(touches.begin(), touches.end(), [&](const BufferTouch& use) {
    return use.node == write.node && !same_walk(access.access(use), op.output());
  });
}

bool may_take_over(const Graph& graph, const GraphAccess& access, const Holding& child,
                   const Holding& parent) {
  if (!lies_alike(graph, access, child, parent)) return false;
  const size_t write = access.touches[at(child.buffer)].front().node;
  const Residency& theirs = parent.residency;
  return theirs.direct.back().node == write &&
         std::all_of(theirs.relayouts.begin(), theirs.relayouts.end(),
                     [&](const Relayout& r) { return r.readers.front().node <= write; });
}

}  // namespace spyre
