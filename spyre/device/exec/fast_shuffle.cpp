#include <algorithm>
#include <cstring>
#include <optional>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/loop_nest.h"

// A shuffle moves boxes between scratchpads. Which core gives what follows from who holds what, so the boxes
// are cut once, and a run is a list of copies.
namespace spyre::exec {
namespace {

std::optional<Box> common(const Box& a, const Box& b, int dims) {
  Box box;
  for (int d = 0; d < dims; ++d) {
    box.lower[d] = std::max(a.lower[d], b.lower[d]);
    box.upper[d] = std::min(a.upper[d], b.upper[d]);
    if (box.lower[d] >= box.upper[d]) {
      return std::nullopt;
    }
  }
  return box;
}

/// What is left of `whole` without `part`, which lies inside: a slab on either side, dim by dim.
void append_rest(Box whole, const Box& part, int dims, std::vector<Box>& rest) {
  for (int d = 0; d < dims; ++d) {
    if (whole.lower[d] < part.lower[d]) {
      rest.push_back(whole);
      rest.back().upper[d] = part.lower[d];
    }
    if (part.upper[d] < whole.upper[d]) {
      rest.push_back(whole);
      rest.back().lower[d] = part.upper[d];
    }
    whole.lower[d] = part.lower[d];
    whole.upper[d] = part.upper[d];
  }
}

class Shuffle final : public FastKernel {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<Shuffle>();
    made->shape_ = shape;
    const Geometry &in = shape.input(0), &out = shape.output();
    const bool alike = in.residence == Residence::kLx && out.residence == Residence::kLx &&
                       in.format == out.format && in.stick_dim == out.stick_dim && in.lane == out.lane &&
                       out.lane != 0;
    for (int core = 0; alike && core < shape.cores(); ++core) {
      if (!made->receive(core)) {
        return nullptr;
      }
    }
    return alike ? std::move(made) : nullptr;
  }

  void run(const Places& places) const override {
    const int64_t grain = std::max<int64_t>(kParallelBytes / std::max<int64_t>(bytes_per_move_, 1), 1);
    parallel_for(std::ssize(moves_), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        copy(moves_[i], places);
      }
    });
  }

 private:
  struct Move {
    int from, to;                    ///< core positions
    int64_t from_offset, to_offset;  ///< bytes, where the box begins in what either holds
    Tiling tiling;
  };

  bool holds_any(int tensor, int core) const {
    return !shape_.bound->tensors[tensor].own_slices[core].empty();
  }

  /// Cuts what a core is to receive by who holds it: the core itself, else the first that does.
  bool receive(int core) {
    const int source = shape_.op().inputs[0], target = shape_.op().output;
    if (!holds_any(target, core)) {
      return true;
    }
    std::vector<Box> missing = {shape_.bound->held(target, core)};
    for (int turn = -1; turn < shape_.cores() && !missing.empty(); ++turn) {
      const int giver = turn < 0 ? core : turn;
      if (!holds_any(source, giver)) {
        continue;
      }
      std::vector<Box> left;
      for (const Box& box : missing) {
        const std::optional<Box> part = common(box, shape_.bound->held(source, giver), shape_.dims());
        if (!part) {
          left.push_back(box);
          continue;
        }
        if (!add_move(giver, core, *part)) {
          return false;
        }
        append_rest(box, *part, shape_.dims(), left);
      }
      missing = std::move(left);
    }
    return missing.empty();
  }

  bool add_move(int from, int to, const Box& box) {
    const Geometry &in = shape_.input(0), &out = shape_.output();
    const auto offset = [&](const Geometry& g, const Box& held) -> std::optional<int64_t> {
      Coordinate local{};
      for (int d = 0; d < shape_.dims(); ++d) {
        local[d] = box.lower[d] - held.lower[d];
        if (local[d] % g.per_step[d] != 0) {
          return std::nullopt;
        }
      }
      return g.offset(local, shape_.dims());
    };
    const auto from_offset = offset(in, shape_.bound->held(shape_.op().inputs[0], from));
    const auto to_offset = offset(out, shape_.bound->held(shape_.op().output, to));
    const LoopNest nest = nest_of({&in, &out}, box, shape_.dims());
    if (!from_offset || !to_offset || nest.axes.empty()) {
      return false;
    }
    bytes_per_move_ = nest.points() * out.element;
    moves_.push_back({from, to, *from_offset, *to_offset, Tiling(nest, nest.points(), out.lanes)});
    return true;
  }

  void copy(const Move& move, const Places& places) const {
    const LoopNest& nest = move.tiling.nest();
    const int64_t bytes = nest.axes[0].extent * shape_.output().element;
    for (int64_t i = 0; i < move.tiling.tiles(); ++i) {
      const Tile tile = move.tiling.tile(i, {places.at(shape_.op().inputs[0], move.from) + move.from_offset,
                                             places.at(shape_.op().output, move.to) + move.to_offset});
      for (int64_t row = 0; row < tile.rows; ++row) {
        std::memcpy(tile.at[1] + row * nest.axes[1].step[1], tile.at[0] + row * nest.axes[1].step[0],
                    std::min(bytes, tile.run * shape_.output().element));
      }
    }
  }

  FastShape shape_;
  std::vector<Move> moves_;
  int64_t bytes_per_move_ = 0;
};

}  // namespace

std::unique_ptr<FastKernel> plan_shuffle(const FastShape& shape) {
  return Shuffle::plan(shape);
}

}  // namespace spyre::exec
