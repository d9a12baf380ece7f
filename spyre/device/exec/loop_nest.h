#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/fast_op.h"

/// Loops over a box with the address arithmetic hoisted.
///
/// A box becomes axes, innermost first: the lanes of a stick, then one axis for each dim (sticks along the
/// stick dim). Two neighbouring axes merge where every tensor steps through them as through one, so that most
/// ops end up with one or two long axes:
///
///     f16[128, 256] in HBM, stick along the second    lanes 64, rows 128, sticks 4   ->   one axis of 32768
///     the same minus f16[128, 1]                      lanes 64, rows 128 x sticks 4       (a value per row)
namespace spyre::exec {

inline constexpr int kMaxOperands = 4;  ///< of a nest: inputs, then the output

struct Axis {
  int64_t extent = 1;
  std::array<int64_t, kMaxOperands> step{};  ///< bytes
};

struct LoopNest {
  std::vector<Axis> axes;  ///< innermost first, at least two
  int operands = 0;

  int64_t points() const;
};

/// The nest of a box over tensors of one stick dim. Empty axes if the box cuts a stick.
LoopNest nest_of(const std::vector<const Geometry*>& tensors, const Box& box, int dims);

/// The nest over blocks of `block` elements along the stick dim, which is one for both: an input and the output, whose
/// sticks may hold different numbers of elements. Each step of the first axis is a block. Empty axes if the box cuts one.
LoopNest nest_of_blocks(const Geometry& in, const Geometry& out, const Box& box, int dims, int64_t block);

/// Two axes of a nest at once: what kernels get.
struct Tile {
  std::array<std::byte*, kMaxOperands> at{};
  int64_t run = 0;   ///< points of the first axis
  int64_t rows = 0;  ///< points of the second
};

/// A nest cut into tiles of a bounded number of points, numbered.
class Tiling {
 public:
  /// `run_grain`: runs are cut only at multiples of it.
  Tiling(LoopNest nest, int64_t points_per_tile, int64_t run_grain);

  const LoopNest& nest() const { return nest_; }
  int64_t tiles() const { return tiles_; }
  int64_t points_per_tile() const { return run_ * rows_; }
  Tile tile(int64_t number, const std::array<std::byte*, kMaxOperands>& base) const;

 private:
  LoopNest nest_;
  int64_t run_ = 1, rows_ = 1;  // of a whole tile
  int64_t run_pieces_ = 1, row_pieces_ = 1, tiles_ = 0;
};

/// The units of an op with their tiles: what runs over tiles, on all threads or core by core.
class TiledUnits {
 public:
  struct Part {
    Unit unit;
    Tiling tiling;
  };

  void add(const Unit& unit, Tiling tiling) {
    parts_.push_back({unit, std::move(tiling)});
    tiles_ = std::max(tiles_, parts_.back().tiling.tiles());
  }
  const std::vector<Part>& parts() const { return parts_; }
  /// Whether each part is a core's own.
  bool core_local() const { return !parts_.empty() && parts_[0].unit.core >= 0; }

  /// Calls `visit(part, number)` for every tile; threads take at least `grain` of them.
  template <typename Visit>
  void for_each(int64_t grain, const Visit& visit) const {
    parallel_for(static_cast<int64_t>(parts_.size()) * tiles_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Part& part = parts_[i / tiles_];
        if (i % tiles_ < part.tiling.tiles()) {
          visit(part, i % tiles_);
        }
      }
    });
  }
  /// The same for the tiles of one core, on the calling thread. Needs `core_local`.
  template <typename Visit>
  void for_core(int core, const Visit& visit) const {
    for (int64_t i = 0; i < parts_[core].tiling.tiles(); ++i) {
      visit(parts_[core], i);
    }
  }

 private:
  std::vector<Part> parts_;
  int64_t tiles_ = 0;  // of the part that has most
};

}  // namespace spyre::exec
