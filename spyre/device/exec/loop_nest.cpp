#include "spyre/device/exec/loop_nest.h"

#include <algorithm>

namespace spyre::exec {
namespace {

bool merges(const Axis& inner, const Axis& outer, int operands) {
  for (int i = 0; i < operands; ++i) {
    if (outer.step[i] != inner.step[i] * inner.extent) {
      return false;
    }
  }
  return true;
}

/// The axes behind the first, those first that step least in the last operand; neighbours that are one become one.
std::vector<Axis> merged(const Axis& first, std::vector<Axis> others, int operands) {
  std::stable_sort(others.begin(), others.end(),
                   [&](const Axis& a, const Axis& b) { return a.step[operands - 1] < b.step[operands - 1]; });
  std::vector<Axis> axes = {first};
  for (const Axis& axis : others) {
    if (merges(axes.back(), axis, operands)) {
      axes.back().extent *= axis.extent;
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.size() == 1) {
    axes.emplace_back();
  }
  return axes;
}

}  // namespace

int64_t LoopNest::points() const {
  int64_t product = axes.empty() ? 0 : 1;
  for (const Axis& axis : axes) {
    product *= axis.extent;
  }
  return product;
}

LoopNest nest_of(const std::vector<const Geometry*>& tensors, const Box& box, int dims) {
  const Geometry& last = *tensors.back();
  LoopNest nest{.operands = static_cast<int>(tensors.size())};
  const bool has_stick = last.present[last.stick_dim];
  std::vector<Axis> axes;
  for (int d = 0; d < dims; ++d) {
    Axis axis{.extent = box.extent(d)};
    if (has_stick && d == last.stick_dim) {
      if (axis.extent % last.lanes != 0) {
        return nest;
      }
      axis.extent /= last.lanes;
    }
    for (int i = 0; i < nest.operands; ++i) {
      axis.step[i] = tensors[i]->step[d];
    }
    if (axis.extent != 1) {
      axes.push_back(axis);
    }
  }
  Axis lanes{.extent = has_stick ? last.lanes : 1};
  for (int i = 0; i < nest.operands; ++i) {
    lanes.step[i] = tensors[i]->lane;
  }
  nest.axes = merged(lanes, std::move(axes), nest.operands);
  return nest;
}

LoopNest nest_of_blocks(const Geometry& in, const Geometry& out, const Box& box, int dims, int64_t block) {
  LoopNest nest{.operands = 2};
  const int stick = out.stick_dim;
  if (box.lower[stick] % block != 0 || box.extent(stick) % block != 0) {
    return nest;
  }
  std::vector<Axis> axes;
  for (int d = 0; d < dims; ++d) {
    if (d != stick && box.extent(d) != 1) {
      axes.push_back({box.extent(d), {in.step[d], out.step[d]}});
    }
  }
  const Axis blocks{box.extent(stick) / block,
                    {block / in.lanes * in.step[stick], block / out.lanes * out.step[stick]}};
  nest.axes = merged(blocks, std::move(axes), nest.operands);
  return nest;
}

Tiling::Tiling(LoopNest nest, int64_t points_per_tile, int64_t run_grain) : nest_(std::move(nest)) {
  if (nest_.points() == 0) {
    return;
  }
  const int64_t run = nest_.axes[0].extent, rows = nest_.axes[1].extent;
  run_ = std::min(run, std::max(points_per_tile / run_grain, int64_t{1}) * run_grain);
  rows_ = std::clamp<int64_t>(points_per_tile / run_, 1, rows);
  run_pieces_ = ceil_div(run, run_);
  row_pieces_ = ceil_div(rows, rows_);
  tiles_ = run_pieces_ * row_pieces_ * (nest_.points() / (run * rows));
}

Tile Tiling::tile(int64_t number, const std::array<std::byte*, kMaxOperands>& base) const {
  if (tiles_ == 1) {
    return {.at = base, .run = run_, .rows = rows_};
  }
  const int64_t first_run = number % run_pieces_ * run_;
  const int64_t first_row = number / run_pieces_ % row_pieces_ * rows_;
  int64_t outer = number / run_pieces_ / row_pieces_;
  Tile tile{.at = base,
            .run = std::min(run_, nest_.axes[0].extent - first_run),
            .rows = std::min(rows_, nest_.axes[1].extent - first_row)};
  for (int i = 0; i < nest_.operands; ++i) {
    tile.at[i] += first_run * nest_.axes[0].step[i] + first_row * nest_.axes[1].step[i];
  }
  for (size_t a = 2; a < nest_.axes.size(); ++a) {
    const Axis& axis = nest_.axes[a];
    for (int i = 0; i < nest_.operands; ++i) {
      tile.at[i] += outer % axis.extent * axis.step[i];
    }
    outer /= axis.extent;
  }
  return tile;
}

}  // namespace spyre::exec
