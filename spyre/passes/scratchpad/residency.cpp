#include "spyre/passes/scratchpad/residency.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/graph/core_map.h"
#include "spyre/ops/ops.h"

namespace spyre {
namespace {

class Judge {
 public:
  Judge(const Graph& graph, const GraphAccess& access, const ResidencyRules& rules, BufferId id)
      : graph_(graph),
        access_(access),
        rules_(rules),
        id_(id),
        buffer_(graph.buffers[static_cast<size_t>(id)]),
        touches_(access.touches[static_cast<size_t>(id)]) {}

  Residency judge() {
    Residency residency{.clone = buffer_.is_input};
    if (buffer_.layout) residency.per_core = buffer_.layout->byte_size().value();
    residency.barred = bar();
    if (!residency.barred.empty()) return residency;
    residency.barred = compare_views();
    if (!residency.barred.empty()) return residency;
    const int64_t avoided = std::ssize(touches_) - (buffer_.is_input ? 1 : 0);
    residency.saves = residency.per_core * avoided;
    residency.per_core = kStickBytes * view_->sticks();
    residency.view = *std::move(view_);
    return residency;
  }

 private:
  bool written() const {
    return std::any_of(touches_.begin(), touches_.end(), [](const BufferTouch& t) { return t.writes; });
  }
  int64_t reads() const {
    return std::count_if(touches_.begin(), touches_.end(), [](const BufferTouch& t) { return !t.writes; });
  }

  std::string bar() const {
    if (touches_.empty()) return "not touched";
    if (buffer_.elements() == 0) return "empty tensor";
    if (buffer_.fill) return "constant";
    if (graph_.is_result(id_)) return "graph output";
    if (buffer_.is_input && written()) return "mutation target";
    if (buffer_.is_input && !rules_.clone_inputs) return "graph input";
    if (buffer_.is_input && reads() < 2) return "graph input, read once";
    if (buffer_.is_input && !is_whole_storage()) return "partial or offset access";
    if (!buffer_.is_input && reads() == 0) return "no consumer";
    for (const BufferTouch& touch : touches_) {
      if (std::string reason = bar_touch(touch); !reason.empty()) return reason;
    }
    return "";
  }

  bool is_whole_storage() const {
    return buffer_.offset == 0 && (buffer_.storage == 0 || buffer_.storage == buffer_.elements());
  }

  std::string bar_touch(const BufferTouch& touch) const {
    const NormalOp& op = access_.ops[touch.node];
    const std::string& node = graph_.nodes[touch.node].name;
    if (touch.operand < op.index_count()) return "index tensor or indirectly accessed";
    if (!touch.writes && is_restickify(op)) return fmt::format("read by restickify '{}'", node);
    if (touch.writes && is_restickify(op) && turns_part_of_stick(op))
      return fmt::format("padding left by restickify '{}'", node);
    if (touch.writes && splits_outside(touch)) return fmt::format("partial sums of '{}'", node);
    // The clone runs over the loops of its first reader, and every core must make its own copy.
    if (buffer_.is_input && splits_outside(touch)) return fmt::format("shared by cores of '{}'", node);
    if (buffer_.is_input && elements_touched(touch) != buffer_.elements()) return "partial or offset access";
    return "";
  }

  // Where a turned dimension ends inside a stick, the rest of that stick is left as it was; in LX that may be
  // anything.
  static bool turns_part_of_stick(const NormalOp& op) {
    return std::any_of(op.access.operands.begin(), op.access.operands.end(), [&](const DeviceAccess& access) {
      return access.lane < 0 || op.access.loops[static_cast<size_t>(access.lane)].extent % access.lanes != 0;
    });
  }

  // Whether cores differ in a loop that this operand does not have.
  bool splits_outside(const BufferTouch& touch) const {
    const std::vector<Loop>& loops = access_.ops[touch.node].access.loops;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].split > 1 && !access_.access(touch).uses(static_cast<int>(i))) return true;
    }
    return false;
  }

  int64_t elements_touched(const BufferTouch& touch) const {
    const std::vector<Loop>& loops = access_.ops[touch.node].access.loops;
    int64_t elements = 1;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (access_.access(touch).uses(static_cast<int>(i))) elements *= loops[i].extent;
    }
    return elements;
  }

  std::string compare_views() {
    const BufferTouch* first = nullptr;
    for (const BufferTouch& touch : touches_) {
      ViewOrReason seen = core_view(access_.ops[touch.node], touch.operand, access_.layouts[touch.node]);
      if (const auto* reason = std::get_if<std::string>(&seen)) {
        return fmt::format("{} in '{}'", *reason, graph_.nodes[touch.node].name);
      }
      CoreView& view = std::get<CoreView>(seen);
      if (!view_) {
        view_ = std::move(view);
        first = &touch;
      } else if (*view_ != view) {
        return fmt::format("core division mismatch: {} in '{}', {} in '{}'", view_->to_string(),
                           graph_.nodes[first->node].name, view.to_string(), graph_.nodes[touch.node].name);
      }
    }
    return "";
  }

  const Graph& graph_;
  const GraphAccess& access_;
  const ResidencyRules& rules_;
  const BufferId id_;
  const Buffer& buffer_;
  const std::vector<BufferTouch>& touches_;
  std::optional<CoreView> view_;
};

bool same_walk(const DeviceAccess& a, const DeviceAccess& b) {
  return a.dims == b.dims && a.lane == b.lane && a.lanes == b.lanes;
}

}  // namespace

std::vector<Residency> residencies(const Graph& graph, const GraphAccess& access,
                                   const ResidencyRules& rules) {
  std::vector<Residency> all;
  for (BufferId id = 0; id < std::ssize(graph.buffers); ++id) {
    all.push_back(Judge(graph, access, rules, id).judge());
  }
  return all;
}

std::vector<BufferId> in_place_parents(const Graph& graph, const GraphAccess& access,
                                       const std::vector<Residency>& residencies, BufferId child) {
  const auto index = [](BufferId id) { return static_cast<size_t>(id); };
  const std::vector<BufferTouch>& touches = access.touches[index(child)];
  if (!residencies[index(child)].barred.empty() || graph.buffers[index(child)].is_input) return {};
  const BufferTouch& write = touches.front();
  const NormalOp& op = access.ops[write.node];
  const OpInfo* info = find_op(op.op.op);
  if (info == nullptr || !info->in_place) return {};

  std::vector<BufferId> parents;
  for (const Access& input : op.op.inputs) {
    const BufferId parent = input.buffer;
    const Residency& residency = residencies[index(parent)];
    const std::vector<BufferTouch>& uses = access.touches[index(parent)];
    const bool dies_here = parent != child && uses.back().node == write.node;
    const bool known = std::find(parents.begin(), parents.end(), parent) != parents.end();
    if (!dies_here || known || !residency.barred.empty()) continue;
    if (*graph.buffers[index(parent)].layout != *graph.buffers[index(child)].layout) continue;
    const bool walks_along = std::all_of(uses.begin(), uses.end(), [&](const BufferTouch& use) {
      return use.node != write.node || same_walk(access.access(use), op.output());
    });
    if (walks_along && residency.view == residencies[index(child)].view) parents.push_back(parent);
  }
  return parents;
}

}  // namespace spyre
