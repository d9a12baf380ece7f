#include "spyre/layout/transfer_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "spyre/base/text.h"

namespace spyre {
namespace {

/// More blocks than this from one view axis are no longer a plan.
constexpr size_t kMaxBlocks = 64;
constexpr size_t kMaxNests = 256;

/// One axis of the view: host offsets first, first + step, ... on the card's side and, in step with them,
/// positions `host_stride` apart in the host tensor.
struct Progression {
  int64_t first;
  int64_t step;
  int64_t count;
  int64_t host_stride;

  int64_t last() const { return first + (count - 1) * step; }
};

struct DigitLoop {
  size_t digit;
  int64_t count;
  int64_t step;  ///< in units of the digit
  int64_t host_stride;
};

/// Part of a progression in which every digit stands still or counts evenly.
struct Block {
  std::vector<int64_t> first;  ///< of each digit
  std::vector<int64_t> last;
  std::vector<DigitLoop> loops;
  int64_t host_offset = 0;
};

/// Cuts one progression into blocks, coarsest digit first.
class Splitter {
 public:
  explicit Splitter(const ElementMap& map) : map_(map) {}

  /// None: more than kMaxBlocks.
  Result<std::optional<std::vector<Block>>> split(const Progression& values) {
    const std::vector<int64_t> zeros(map_.digits().size(), 0);
    SPYRE_TRY(split_at(0, values, {.first = zeros, .last = zeros, .loops = {}}));
    return too_many_ ? std::nullopt : std::optional(std::move(blocks_));
  }

 private:
  const MapAxis& digit(size_t k) const { return map_.axes()[map_.digits()[k]]; }

  static Block standing(Block block, size_t k, int64_t value) {
    block.first[k] = block.last[k] = value;
    return block;
  }
  static Block counting(Block block, const DigitLoop& loop, int64_t first) {
    block.first[loop.digit] = first;
    block.last[loop.digit] = first + (loop.count - 1) * loop.step;
    if (loop.count > 1) {
      block.loops.push_back(loop);
    }
    return block;
  }
  static Block later(Block block, int64_t host_elements) {
    block.host_offset += host_elements;
    return block;
  }

  Status split_at(size_t k, Progression v, Block block) {
    if (v.count == 0 || too_many_) {
      return {};
    }
    if (k == map_.digits().size()) {
      return finish(v, std::move(block));
    }
    const int64_t unit = digit(k).host_stride;
    const int64_t first = v.first / unit;
    const int64_t last = v.last() / unit;
    if (last >= digit(k).extent) {
      return Error(ErrorKind::kOutOfRange,
                   fmt::format("Invalid device tensor storage offset: the layout has no place for element {}",
                               v.last()));
    }
    if (first == last) {
      v.first -= first * unit;
      return split_at(k + 1, v, standing(std::move(block), k, first));
    }
    if (v.step % unit == 0) {
      const DigitLoop loop = {k, v.count, v.step / unit, v.host_stride};
      return split_at(k + 1, {v.first % unit, 0, 1, 0}, counting(std::move(block), loop, first));
    }
    return unit % v.step == 0 ? split_evenly(k, v, block) : peel(k, v, block);
  }

  /// A whole number of steps fits in one unit of the digit: head, full units, tail.
  Status split_evenly(size_t k, const Progression& v, const Block& block) {
    const int64_t unit = digit(k).host_stride;
    const int64_t per_unit = unit / v.step;
    const int64_t phase = v.first % v.step;
    const int64_t into = v.first % unit;
    const int64_t head = into == phase ? 0 : std::min(v.count, ceil_div(unit - into, v.step));
    const int64_t digit_after = v.first / unit + (head > 0 ? 1 : 0);
    const int64_t full = (v.count - head) / per_unit;
    const int64_t tail = (v.count - head) % per_unit;

    SPYRE_TRY(split_at(k + 1, {into, v.step, head, v.host_stride}, standing(block, k, v.first / unit)));
    if (full > 0) {
      const DigitLoop loop = {k, full, 1, v.host_stride * per_unit};
      SPYRE_TRY(split_at(k + 1, {phase, v.step, per_unit, v.host_stride},
                         counting(later(block, head * v.host_stride), loop, digit_after)));
    }
    return split_at(k + 1, {phase, v.step, tail, v.host_stride},
                    standing(later(block, (head + full * per_unit) * v.host_stride), k, digit_after + full));
  }

  /// The steps drift against the digit: take off what lies in its first value and go on.
  Status peel(size_t k, Progression v, Block block) {
    const int64_t unit = digit(k).host_stride;
    while (v.count > 0 && !too_many_) {
      const int64_t here = v.first / unit;
      const int64_t into = v.first - here * unit;
      const int64_t taken = std::min(v.count, ceil_div(unit - into, v.step));
      SPYRE_TRY(split_at(k + 1, {into, v.step, taken, v.host_stride}, standing(block, k, here)));
      v.first += taken * v.step;
      v.count -= taken;
      block.host_offset += taken * v.host_stride;
    }
    return {};
  }

  Status finish(const Progression& v, Block block) {
    if (v.first != 0 || v.count != 1) {
      return Error(
          ErrorKind::kOutOfRange,
          "Invalid device tensor storage offset: the layout has no place for some elements of the view");
    }
    too_many_ = blocks_.size() == kMaxBlocks;
    if (!too_many_) {
      blocks_.push_back(std::move(block));
    }
    return {};
  }

  const ElementMap& map_;
  std::vector<Block> blocks_;
  bool too_many_ = false;
};

struct ExpandedAxis {
  int64_t count;
  int64_t host_stride;
};

struct ViewAxes {
  std::vector<Progression> moving;     ///< by falling step; at least one
  std::vector<ExpandedAxis> expanded;  ///< every position shows the same device element
};

/// Sorts the view's axes, joins those that both sides walk as one, and shares the storage offset out among
/// them, coarsest first.
ViewAxes axes_of(const ViewGeometry& view, std::span<const int64_t> host_strides) {
  ViewAxes axes;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == 1) {
      continue;
    }
    if (view.strides[i] == 0) {
      axes.expanded.push_back({view.sizes[i], host_strides[i]});
    } else {
      axes.moving.push_back({0, view.strides[i], view.sizes[i], host_strides[i]});
    }
  }
  std::ranges::stable_sort(axes.moving, std::greater<>(), &Progression::step);
  for (size_t i = axes.moving.size(); i-- > 1;) {
    const Progression inner = axes.moving[i];
    Progression& outer = axes.moving[i - 1];
    if (outer.step == inner.count * inner.step && outer.host_stride == inner.count * inner.host_stride) {
      outer = {0, inner.step, outer.count * inner.count, inner.host_stride};
      axes.moving.erase(axes.moving.begin() + static_cast<int64_t>(i));
    }
  }
  int64_t offset = view.storage_offset;
  for (Progression& axis : axes.moving) {
    axis.first = offset / axis.step * axis.step;
    offset -= axis.first;
  }
  if (axes.moving.empty()) {
    axes.moving.push_back({0, 0, 1, 0});
  }
  axes.moving.back().first += offset;
  return axes;
}

/// Adding the digits of different view axes gives the digits of their sum only where nothing carries:
/// each digit must stay below its extent, and what lies below a digit must stay below one unit of it.
bool nothing_carries(const ElementMap& map, std::span<const std::vector<Block>> blocks) {
  const size_t digits = map.digits().size();
  std::vector<int64_t> digit_sum(digits, 0);
  std::vector<int64_t> below_sum(digits, 0);  // of this digit and all finer ones, in host elements
  for (const std::vector<Block>& axis_blocks : blocks) {
    std::vector<int64_t> digit_max(digits, 0);
    std::vector<int64_t> below_max(digits, 0);
    for (const Block& block : axis_blocks) {
      int64_t below = 0;
      for (size_t k = digits; k-- > 0;) {
        below += block.last[k] * map.axes()[map.digits()[k]].host_stride;
        digit_max[k] = std::max(digit_max[k], block.last[k]);
        below_max[k] = std::max(below_max[k], below);
      }
    }
    for (size_t k = 0; k < digits; ++k) {
      digit_sum[k] += digit_max[k];
      below_sum[k] += below_max[k];
    }
  }
  for (size_t k = 0; k < digits; ++k) {
    const bool overflows = digit_sum[k] >= map.axes()[map.digits()[k]].extent;
    const bool carries = k > 0 && below_sum[k] >= map.axes()[map.digits()[k - 1]].host_stride;
    if (overflows || carries) {
      return false;
    }
  }
  return true;
}

struct TransferLoop {
  int64_t count;
  int64_t host_stride;
  int64_t device_stride;
};

void append(Nest& nest, const TransferLoop& loop) {
  nest.counts.push_back(loop.count);
  nest.host_strides.push_back(loop.host_stride);
  nest.device_strides.push_back(loop.device_stride);
}

/// The loops over one device axis: those of the blocks, or one that stands still.
std::vector<TransferLoop> loops_of(size_t axis_index, const MapAxis& axis,
                                   std::span<const Block* const> blocks, const ElementMap& map) {
  std::vector<TransferLoop> loops;
  for (const Block* block : blocks) {
    for (const DigitLoop& loop : block->loops) {
      if (map.digits()[loop.digit] == axis_index) {
        loops.push_back({loop.count, loop.host_stride, loop.step * axis.device_stride});
      }
    }
  }
  if (axis.is_broadcast()) {
    loops.push_back({axis.extent, 0, axis.device_stride});
  }
  if (loops.empty()) {
    loops.push_back({1, axis.host_stride < 0 ? 1 : axis.host_stride, axis.device_stride});
  }
  std::ranges::stable_sort(loops, std::greater<>(), &TransferLoop::device_stride);
  return loops;
}

Nest nest_of(const ElementMap& map, std::span<const Block* const> blocks,
             std::span<const ExpandedAxis> expanded) {
  Nest nest;
  for (const ExpandedAxis& axis : expanded) {
    append(nest, {axis.count, axis.host_stride, 0});
  }
  for (size_t i = 0; i < map.axes().size(); ++i) {
    for (const TransferLoop& loop : loops_of(i, map.axes()[i], blocks, map)) {
      append(nest, loop);
    }
  }
  for (const Block* block : blocks) {
    nest.host_offset += block->host_offset;
    for (size_t k = 0; k < map.digits().size(); ++k) {
      nest.device_offset += block->first[k] * map.axes()[map.digits()[k]].device_stride;
    }
  }
  return nest;
}

Status check_view(const ViewGeometry& view, std::span<const int64_t> host_strides) {
  if (view.sizes.size() != view.strides.size() || view.sizes.size() != host_strides.size()) {
    return Error(ErrorKind::kInvalidArgument,
                 fmt::format("Sizes {}, device strides {} and host strides {} must have the same length",
                             list_text(view.sizes), list_text(view.strides), list_text(host_strides)));
  }
  const auto negative = [](int64_t n) { return n < 0; };
  if (std::ranges::any_of(view.sizes, negative) || std::ranges::any_of(view.strides, negative) ||
      view.storage_offset < 0) {
    return Error(
        ErrorKind::kInvalidArgument,
        fmt::format("A view has no negative size, stride or offset, found sizes {} strides {} offset {}",
                    list_text(view.sizes), list_text(view.strides), view.storage_offset));
  }
  return {};
}

}  // namespace

Result<std::optional<std::vector<Nest>>> plan_nests(const ElementMap& map, const ViewGeometry& view,
                                                    std::span<const int64_t> host_strides) {
  SPYRE_TRY(check_view(view, host_strides));
  if (view.numel() == 0) {
    return std::optional(std::vector<Nest>{});
  }
  const ViewAxes axes = axes_of(view, host_strides);
  std::vector<std::vector<Block>> blocks;
  size_t total = 1;
  for (const Progression& axis : axes.moving) {
    SPYRE_ASSIGN_OR_RETURN(std::optional<std::vector<Block>> of_axis, Splitter(map).split(axis));
    total *= of_axis ? of_axis->size() : kMaxNests + 1;
    if (total > kMaxNests) {
      return std::optional<std::vector<Nest>>();
    }
    blocks.push_back(*std::move(of_axis));
  }
  if (!nothing_carries(map, blocks)) {
    return std::optional<std::vector<Nest>>();
  }

  std::vector<Nest> nests;
  for (size_t choice = 0; choice < total; ++choice) {
    std::vector<const Block*> chosen;
    size_t rest = choice;
    for (const std::vector<Block>& of_axis : blocks) {
      chosen.push_back(&of_axis[rest % of_axis.size()]);
      rest /= of_axis.size();
    }
    nests.push_back(nest_of(map, chosen, axes.expanded));
  }
  std::ranges::stable_sort(nests, std::less<>(), &Nest::device_offset);
  return std::optional(std::move(nests));
}

}  // namespace spyre
