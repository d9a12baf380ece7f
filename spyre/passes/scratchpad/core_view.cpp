#include "spyre/passes/scratchpad/core_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/graph/core_map.h"

namespace spyre {
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

class ViewBuilder {
 public:
  ViewBuilder(const NormalOp& op, const DeviceAccess& access, std::span<const DeviceLayout* const> layouts)
      : op_(op), access_(access), layouts_(layouts), steps_(core_steps(op)) {
    view_.first.assign(static_cast<size_t>(cores_used(op.access.loops)), 0);
  }

  ViewOrReason build() {
    for (size_t d = access_.dims.size(); d-- > 0;) {
      if (std::string reason = add(access_.dims[d]); !reason.empty()) return reason;
      stride_ *= access_.dims[d].size;
    }
    std::reverse(view_.runs.begin(), view_.runs.end());
    return std::move(view_);
  }

 private:
  // Empty, or why not.
  std::string add(const AccessDim& dim) {
    if (!dim.indirect.empty()) return "index tensor or indirectly accessed";
    if (dim.loop < 0) return dim.size == 1 ? "" : "partial or offset access";
    const Loop& loop = op_.access.loops[static_cast<size_t>(dim.loop)];
    const int64_t part = dim.tile ? access_.lanes : 1;
    const int64_t padded = padded_extent(op_, dim.loop, layouts_);
    const int64_t count = dim.tile ? padded / part : loop.extent;
    if (dim.offset != 0 || count != dim.size) return "partial or offset access";
    // The card runs over whole sticks also where a dimension ends inside one, as in a turn of sticks.
    if (padded != count * part || count % loop.split != 0) return "slices are not whole sticks";
    hold(dim.loop, count / loop.split);
    return "";
  }

  void hold(int loop, int64_t count) {
    const auto index = static_cast<size_t>(loop);
    for (size_t core = 0; core < view_.first.size(); ++core) {
      const int64_t slice = static_cast<int64_t>(core) / steps_[index] % op_.access.loops[index].split;
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
  const std::vector<int64_t> steps_;
  int64_t stride_ = 1;  // sticks from one position of the current dimension to the next
  CoreView view_;
};

}  // namespace

int64_t CoreView::sticks() const {
  int64_t count = 1;
  for (const StickRun& run : runs) count *= run.count;
  return count;
}

std::string CoreView::to_string() const {
  return fmt::format("{} stick{} on {} core{}", sticks(), sticks() == 1 ? "" : "s", cores(),
                     cores() == 1 ? "" : "s");
}

ViewOrReason core_view(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts) {
  return ViewBuilder(op, op.access.operands[operand], layouts).build();
}

}  // namespace spyre
