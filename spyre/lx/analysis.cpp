#include "spyre/lx/analysis.h"

#include <algorithm>

#include "spyre/graph/core_map.h"
#include "spyre/lx/copies.h"
#include "spyre/lx/eligibility.h"

namespace spyre::lx {

bool Analysis::ViewOrder::operator()(const CoreView& a, const CoreView& b) const {
  const auto run_key = [](const StridedRun& run) { return std::pair(run.stride, run.count); };
  if (a.first != b.first) return a.first < b.first;
  return std::lexicographical_compare(
      a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(),
      [&](const StridedRun& x, const StridedRun& y) { return run_key(x) < run_key(y); });
}

Analysis::Analysis(const DeviceGraph& graph, GraphAccess access, MoveSet moves)
    : graph_(&graph), access_(std::move(access)), moves_(moves), views_(graph.buffers.size()) {
  for (const NormalOp& op : access_.ops) most_cores_ = std::max(most_cores_, cores_used(op.access.loops));
  for (BufferId id = 0; id < std::ssize(graph.buffers); ++id) {
    Reasons reasons{.whole = ineligible_buffer(graph, access_, moves, id), .touches = {}};
    for (size_t i = 0; i < touches(id).size() && reasons.whole.empty(); ++i)
      reasons.touches.push_back(ineligible_touch(graph, access_, moves, touches(id)[i]));
    ineligible_.push_back(std::move(reasons));
  }
}

Result<Analysis> Analysis::of(const DeviceGraph& graph, MoveSet moves) {
  SPYRE_ASSIGN_OR_RETURN(GraphAccess access, access_of(graph));
  return Analysis(graph, std::move(access), moves);
}

const std::vector<BufferTouch>& Analysis::touches(BufferId buffer) const {
  return access_.touches[static_cast<size_t>(buffer)];
}

const std::string& Analysis::ineligible(BufferId buffer) const {
  return ineligible_[static_cast<size_t>(buffer)].whole;
}

const std::string& Analysis::ineligible(BufferId buffer, size_t touch) const {
  return ineligible_[static_cast<size_t>(buffer)].touches[touch];
}

const CoreView* Analysis::intern(const CoreView& view) const {
  return &*interned_.insert(view).first;
}

TouchView Analysis::view_of(const NormalOp& op, size_t operand,
                            std::span<const DeviceLayout* const> layouts) const {
  TouchView seen{.moved = operand_traffic(op, operand, layouts)};
  const ViewOrReason view = core_view(op, operand, layouts);
  if (const auto* found = std::get_if<CoreView>(&view)) {
    seen.view = intern(*found);
  } else {
    seen.reason = "partial or offset access";
  }
  return seen;
}

const std::vector<TouchView>& Analysis::views(BufferId buffer) const {
  std::optional<std::vector<TouchView>>& views = views_[static_cast<size_t>(buffer)];
  if (views) return *views;
  views.emplace();
  for (const BufferTouch& touch : touches(buffer))
    views->push_back(view_of(access_.ops[touch.node], touch.operand, access_.layouts[touch.node]));
  return *views;
}

bool Analysis::can_copy(BufferId id, const CoreView& from, const CoreView& to) const {
  // Cores that hold the same part would all write it.
  if (&from == &to && from.shared()) return false;
  return can_divide_copy(id, from) && can_divide_copy(id, to);
}

// Whether a copy of the whole buffer can be divided so that every core has the part that this view gives it.
// Asked for every pair of divisions of a search, so both the answer and the copy it is about are kept.
bool Analysis::can_divide_copy(BufferId id, const CoreView& view) const {
  const auto [known, fresh] = copies_.try_emplace(std::pair(id, &view), false);
  if (!fresh) return known->second;
  const auto [model, unknown] = copy_models_.try_emplace(id);
  if (unknown) {
    const BufferTouch* basis = whole_touch(*graph_, access_, id);
    if (basis != nullptr) model->second = model_of_copy(*graph_, access_, *basis, id);
  }
  const DeviceLayout& layout = *graph_->buffers[static_cast<size_t>(id)].layout;
  known->second = model->second && has_view(*model->second, layout, view);
  return known->second;
}

const CoreView* Analysis::spread(BufferId id) const {
  const BufferTouch* basis = whole_touch(*graph_, access_, id);
  if (basis == nullptr) return nullptr;
  for (int64_t cores = most_cores_; cores > 0; --cores) {
    if (const auto view = spread_view(*graph_, access_, *basis, id, cores)) return intern(*view);
  }
  return nullptr;
}

}  // namespace spyre::lx
