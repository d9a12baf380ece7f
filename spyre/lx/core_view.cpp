#include "spyre/lx/core_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/graph/core_map.h"

namespace spyre::lx {
namespace {

// Elements of a loop that the card runs over: whole sticks of every operand that has it along the stick.
int64_t padded_extent(const NormalOp& op, int loop, std::span<const DeviceLayout* const> layouts) {
  const int64_t extent = op.access.loops[static_cast<size_t>(loop)].extent;
  int64_t padded = extent;
  for (size_t i = 0; i < layouts.size(); ++i) {
    const DeviceAccess& access = op.access.operands[i];
    if (access.lane != loop) continue;
    // Widened elements alternate over pairs of sticks.
    const bool pairs = layouts[i]->element_arrangement == ElementArrangement::DL16_TO_FP32;
    padded = std::max(padded, round_up(extent, pairs ? 2 * access.lanes : access.lanes));
  }
  return padded;
}

// How one operand of a node meets its device dimensions.
struct HeldDim {
  int loop = -1;
  int64_t size = 1;  // sticks, or rows of sticks, of the whole dimension
};

// Goes through the device dimensions from the innermost out, so that `stride_` is always known. A dimension that a core
// holds whole continues the run of the one inside it when that one was whole too: equal boxes of sticks get equal runs,
// however many dimensions they were written in.
class ViewBuilder {
 public:
  ViewBuilder(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts)
      : op_(op), access_(op.access.operands[operand]), layouts_(layouts), steps_(core_steps(op)) {
    // A shuffle leaves its result divided otherwise than it found its input.
    const bool moved = op.op.op == OpId::shuffle && operand + 1 == op.access.operands.size();
    for (size_t i = 0; i < op.access.loops.size(); ++i) {
      const Loop& loop = op.access.loops[i];
      splits_.push_back(moved ? loop.to_split : loop.split);
      if (moved) steps_[i] = std::max<int64_t>(loop.to_step, 1);
    }
    const bool shuffles = op.op.op == OpId::shuffle;
    const int64_t cores = !shuffles ? cores_used(op.access.loops)
                          : moved   ? shuffle_cores(op.op).to
                                    : shuffle_cores(op.op).from;
    view_.first.assign(static_cast<size_t>(cores), 0);
  }

  ViewOrReason build() {
    for (size_t d = access_.dims.size(); d-- > 0;) {
      const auto held = held_dim(access_.dims[d]);
      if (const auto* reason = std::get_if<std::string>(&held)) return *reason;
      if (const HeldDim& dim = std::get<HeldDim>(held); dim.loop >= 0) hold(dim);
      stride_ *= access_.dims[d].size;
    }
    std::reverse(view_.runs.begin(), view_.runs.end());
    return std::move(view_);
  }

  // The dimension as the cores would share it, or why they cannot.
  std::variant<HeldDim, std::string> held_dim(const AccessDim& dim) const {
    if (!dim.indirect.empty()) return "index tensor or indirectly accessed";
    if (dim.loop < 0) {
      if (dim.size == 1) return HeldDim{};
      return "partial or offset access";
    }
    const Loop& loop = op_.access.loops[static_cast<size_t>(dim.loop)];
    const int64_t part = dim.tile ? access_.lanes : 1;
    const int64_t padded = padded_extent(op_, dim.loop, layouts_);
    const int64_t count = dim.tile ? padded / part : loop.extent;
    const int64_t split = splits_[static_cast<size_t>(dim.loop)];
    const bool slice = dim.offset != 0 || count != dim.size;
    // Where the dimension is cut, a slice of it would give cores other parts than a node that touches all of it.
    if (slice && (split != 1 || dim.offset + count > dim.size)) return "partial or offset access";
    // The card runs over whole sticks also where a dimension ends inside one, as in a turn of sticks.
    if (padded != count * part || count % split != 0) return "slices are not whole sticks";
    return HeldDim{dim.loop, dim.size};
  }

 private:
  // Core c has slice c / step % split of the loop: its number read in the mixed base of the splits.
  void hold(const HeldDim& dim) {
    const auto index = static_cast<size_t>(dim.loop);
    const int64_t count = dim.size / splits_[index];
    for (size_t core = 0; core < view_.first.size(); ++core) {
      const int64_t slice = static_cast<int64_t>(core) / steps_[index] % splits_[index];
      view_.first[core] += slice * count * stride_;
    }
    if (count == 1) return;
    if (!view_.runs.empty() && view_.runs.back().stride * view_.runs.back().count == stride_) {
      view_.runs.back().count *= count;
    } else {
      view_.runs.push_back({stride_, count});
    }
  }

  const NormalOp& op_;
  const DeviceAccess& access_;
  std::span<const DeviceLayout* const> layouts_;
  std::vector<int64_t> steps_, splits_;
  int64_t stride_ = 1;  // sticks from one position of the current dimension to the next
  CoreView view_;
};

// Cores from core 0 to the first one whose part starts `apart` sticks behind that of core 0; 0: none does.
int64_t step_to(const CoreView& view, int64_t apart) {
  for (size_t core = 1; core < view.first.size(); ++core) {
    if (view.first[core] - view.first[0] == apart) return static_cast<int64_t>(core);
  }
  return 0;
}

}  // namespace

int64_t CoreView::sticks() const {
  int64_t count = 1;
  for (const StridedRun& run : runs) count *= run.count;
  return count;
}

int64_t CoreView::parts() const {
  std::vector<int64_t> starts(first.begin(), first.end());
  std::sort(starts.begin(), starts.end());
  return std::unique(starts.begin(), starts.end()) - starts.begin();
}

std::string CoreView::to_string() const {
  std::string text = fmt::format("{} stick{} on {} core{}", sticks(), sticks() == 1 ? "" : "s", cores(),
                                 cores() == 1 ? "" : "s");
  if (shared()) text += fmt::format(", {} part{}", parts(), parts() == 1 ? "" : "s");
  return text;
}

ViewOrReason core_view(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts) {
  return ViewBuilder(op, operand, layouts).build();
}

int64_t sticks_moved(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts) {
  const DeviceAccess& access = op.access.operands[operand];
  const bool output = operand + 1 == op.access.operands.size();
  int64_t sticks = 1;
  for (size_t i = 0; i < op.access.loops.size(); ++i) {
    const Loop& loop = op.access.loops[i];
    const int index = static_cast<int>(i);
    bool uses = access.uses(index);
    // A table gives one row for each entry of the index tensors.
    for (size_t t = 0; t < op.index_count() && !uses; ++t) {
      const bool through = std::any_of(access.dims.begin(), access.dims.end(), [&](const AccessDim& dim) {
        return dim.indirect == op.op.indices[t].first;
      });
      uses = through && op.index(t).uses(index);
    }
    // Cores that share a result combine it, and one of them writes.
    if (!uses) {
      if (!(output && loop.reduced)) sticks *= loop.split;
      continue;
    }
    const int64_t padded = padded_extent(op, index, layouts);
    if (access.lane == index) {
      sticks *= (padded / loop.split + access.lanes - 1) / access.lanes * loop.split;
      continue;
    }
    // Where rows turn into sticks, the card runs over whole sticks of them and moves those that are there.
    const auto rows = std::find_if(access.dims.begin(), access.dims.end(),
                                   [&](const AccessDim& dim) { return dim.loop == index; });
    sticks *= rows == access.dims.end() ? padded : std::min(padded, rows->size - rows->offset);
  }
  return sticks;
}

std::optional<AdoptedLoops> loops_for_view(const NormalOp& op, size_t operand, const CoreView& view,
                                           std::span<const DeviceLayout* const> layouts) {
  // Runs are matched with dimensions from the innermost out. A run that is as long as a dimension or longer says that the
  // dimension is whole, and what is left of it belongs to the next one; a shorter one, or none, says into how many slices
  // the dimension is cut, and the first core that starts one slice further says in which step.
  NormalOp whole = op;
  for (Loop& loop : whole.access.loops) loop.split = 1, loop.step = 0;
  const ViewBuilder dims(whole, operand, layouts);
  const std::vector<AccessDim>& access = op.access.operands[operand].dims;
  std::vector<StridedRun> runs(view.runs.rbegin(), view.runs.rend());  // innermost first, as dims are visited
  AdoptedLoops adopted{.loops = whole.access.loops};
  size_t next = 0;
  int64_t stride = 1, parts = 1;
  for (size_t d = access.size(); d-- > 0; stride *= access[d].size) {
    const auto held = dims.held_dim(access[d]);
    if (std::holds_alternative<std::string>(held)) return std::nullopt;
    const HeldDim& dim = std::get<HeldDim>(held);
    if (dim.loop < 0 || dim.size == 1) continue;
    int64_t count = 1;
    if (next < runs.size() && runs[next].stride == stride) {
      StridedRun& run = runs[next];
      count = std::min(run.count, dim.size);
      if (run.count % count != 0) return std::nullopt;
      run = {stride * dim.size, run.count / count};
      if (run.count == 1) ++next;
    }
    if (dim.size % count != 0) return std::nullopt;
    Loop& loop = adopted.loops[static_cast<size_t>(dim.loop)];
    loop.split = dim.size / count;
    if (loop.split == 1) continue;
    loop.step = step_to(view, count * stride);
    if (loop.step == 0) return std::nullopt;
    parts *= loop.split;
  }
  adopted.spare = view.cores() / parts;
  if (adopted.spare > 1) adopted.spare_step = step_to(view, 0);
  // Whether the guess is right: with the spare cores on a loop of their own the view comes out again.
  NormalOp check = op;
  check.access.loops = adopted.loops;
  check.access.loops.push_back({.name = "",
                                .extent = adopted.spare,
                                .split = adopted.spare,
                                .step = std::max<int64_t>(adopted.spare_step, 1)});
  if (core_view(check, operand, layouts) != ViewOrReason(view)) return std::nullopt;
  return adopted;
}

}  // namespace spyre::lx
