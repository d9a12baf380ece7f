#include <algorithm>
#include <array>
#include <cstring>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/loop_nest.h"

// Copies move bits. Where both tensors have the same stick dim, runs of whole sticks move at once; where they
// differ (restickify), squares of sticks are transposed.
namespace spyre::exec {
namespace {

class RunCopy final : public FastKernel {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<RunCopy>();
    made->shape_ = shape;
    for (const Unit& unit : units_of(shape)) {
      const LoopNest nest = nest_of({&shape.input(0), &shape.output()}, unit.box, shape.dims());
      if (nest.axes.empty()) {
        return nullptr;
      }
      made->units_.add(unit, Tiling(nest, kTilePoints, shape.output().lanes));
    }
    return made;
  }
  bool elementwise() const override { return true; }

  void run(const Places& places) const override {
    units_.for_each(kParallelPoints / kTilePoints,
                    [&](const TiledUnits::Part& part, int64_t tile) { copy_tile(part, tile, places); });
  }
  bool core_local() const override { return units_.core_local(); }
  void run_core(const Places& places, int core) const override {
    units_.for_core(core, [&](const TiledUnits::Part& part, int64_t tile) { copy_tile(part, tile, places); });
  }

 private:
  void copy_tile(const TiledUnits::Part& part, int64_t number, const Places& places) const {
    const LoopNest& nest = part.tiling.nest();
    const Tile tile = part.tiling.tile(number, {part.unit.base(shape_, places, shape_.op().inputs[0]),
                                                part.unit.base(shape_, places, shape_.op().output)});
    const int element = shape_.output().element;
    for (int64_t row = 0; row < tile.rows; ++row) {
      const std::byte* from = tile.at[0] + row * nest.axes[1].step[0];
      std::byte* to = tile.at[1] + row * nest.axes[1].step[1];
      if (nest.axes[0].step[0] == element) {
        std::memmove(to, from, tile.run * element);
      } else {  // one element for the whole run
        for (int64_t i = 0; i < tile.run; ++i) {
          std::memcpy(to + i * element, from, element);
        }
      }
    }
  }

  FastShape shape_;
  TiledUnits units_;
};

constexpr int64_t kSquare = 8;
using Row [[gnu::vector_size(2 * kSquare)]] = uint16_t;

/// Turns a square of eight rows of eight 16-bit elements: three rounds that interleave elements, pairs, fours.
void turn_square(const std::byte* from, int64_t from_row, std::byte* to, int64_t to_row) {
  std::array<Row, kSquare> rows, pairs;
  for (int64_t i = 0; i < kSquare; ++i) std::memcpy(&rows[i], from + i * from_row, sizeof(Row));
  for (int round = 0; round < 3; ++round) {
    for (int64_t i = 0; i < kSquare / 2; ++i) {
      const Row a = rows[i], b = rows[i + kSquare / 2];
      pairs[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      pairs[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    rows = pairs;
  }
  for (int64_t i = 0; i < kSquare; ++i) std::memcpy(to + i * to_row, &rows[i], sizeof(Row));
}

/// Turns `rows` rows of `columns` 16-bit elements.
void turn_block(const std::byte* from, int64_t from_row, std::byte* to, int64_t to_row, int64_t rows,
                int64_t columns) {
  for (int64_t c = 0; c < columns; c += kSquare) {
    const int64_t last_column = std::min(c + kSquare, columns);
    for (int64_t r = 0; r < rows; r += kSquare) {
      const int64_t last_row = std::min(r + kSquare, rows);
      if (last_row - r == kSquare && last_column - c == kSquare) {
        turn_square(from + r * from_row + c * 2, from_row, to + c * to_row + r * 2, to_row);
        continue;
      }
      for (int64_t i = c; i < last_column; ++i) {
        for (int64_t j = r; j < last_row; ++j) {
          std::memcpy(to + i * to_row + j * 2, from + j * from_row + i * 2, 2);
        }
      }
    }
  }
}

class TurnSticks final : public FastKernel {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    const Geometry &in = shape.input(0), &out = shape.output();
    if (in.element != 2 || !in.present[out.stick_dim] || !out.present[in.stick_dim]) {
      return nullptr;
    }
    auto made = std::make_unique<TurnSticks>();
    made->shape_ = shape;
    made->units_ = units_of(shape);
    for (const Unit& unit : made->units_) {
      for (int d = 0; d < shape.dims(); ++d) {
        if (unit.box.lower[d] % std::max(in.per_step[d], out.per_step[d]) != 0 && unit.box.extent(d) > 0) {
          return nullptr;
        }
      }
      made->blocks_ = std::max(made->blocks_, made->blocks_of(unit.box));
    }
    return made;
  }

  void run(const Places& places) const override {
    parallel_for(static_cast<int64_t>(units_.size()) * blocks_, kParallelPoints / 4096,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const Unit& unit = units_[i / blocks_];
                     if (i % blocks_ < blocks_of(unit.box)) {
                       turn(unit, i % blocks_, places);
                     }
                   }
                 });
  }

 private:
  /// Coordinates of a block along a dim: a stick along both stick dims, one elsewhere.
  int64_t block_extent(int d) const {
    return std::max(shape_.input(0).per_step[d], shape_.output().per_step[d]);
  }

  int64_t blocks_of(const Box& box) const {
    int64_t blocks = 1;
    for (int d = 0; d < shape_.dims(); ++d) {
      blocks *= ceil_div(box.extent(d), block_extent(d));
    }
    return blocks;
  }

  void turn(const Unit& unit, int64_t number, const Places& places) const {
    const Geometry &in = shape_.input(0), &out = shape_.output();
    Coordinate local{}, extent{};
    for (int d = 0; d < shape_.dims(); ++d) {
      const int64_t along = ceil_div(unit.box.extent(d), block_extent(d));
      local[d] = number % along * block_extent(d);
      extent[d] = std::min(block_extent(d), unit.box.extent(d) - local[d]);
      number /= along;
    }
    turn_block(unit.base(shape_, places, shape_.op().inputs[0]) + in.offset(local, shape_.dims()),
               in.step[out.stick_dim],
               unit.base(shape_, places, shape_.op().output) + out.offset(local, shape_.dims()),
               out.step[in.stick_dim], extent[out.stick_dim], extent[in.stick_dim]);
  }

  FastShape shape_;
  std::vector<Unit> units_;
  int64_t blocks_ = 0;
};

}  // namespace

std::unique_ptr<FastKernel> plan_copy(const FastShape& shape) {
  const Geometry &in = shape.input(0), &out = shape.output();
  if (in.element != out.element || out.lane == 0 || in.format != out.format) {
    return nullptr;
  }
  if (in.gathered >= 0 && out.gathered >= 0) {
    return nullptr;
  }
  if (in.gathered >= 0 || out.gathered >= 0) {
    return plan_indexed_copy(shape);
  }
  if (in.lane == 0 || in.stick_dim == out.stick_dim) {
    return RunCopy::plan(shape);
  }
  return TurnSticks::plan(shape);
}

}  // namespace spyre::exec
