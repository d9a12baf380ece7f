#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "spyre/device/exec/access.h"
#include "spyre/device/exec/kernels.h"
#include "spyre/device/exec/loop_nest.h"
#include "spyre/program/element.h"

namespace spyre::exec {
namespace {

/// A function of one 16-bit code: all its values.
using CodeTable = std::array<uint16_t, 65536>;

bool same_sticks(const FastShape& shape) {
  const Geometry& out = shape.output();
  const auto fits = [&](const Geometry& g) {
    return g.plain && g.format == out.format && (g.lane == 0 || g.stick_dim == out.stick_dim);
  };
  const auto inputs = static_cast<int>(shape.op().inputs.size());
  for (int i = 0; i < inputs; ++i) {
    if (!fits(shape.input(i))) {
      return false;
    }
  }
  return fits(out) && out.lane != 0 && inputs >= 1 && inputs <= 3;
}

/// Words in, one vector out: lookups one by one would wait for their loads and stores of two bytes.
void look_up_eight(const uint16_t* from, uint16_t* to, const CodeTable& table) {
  using Eight [[gnu::vector_size(16)]] = uint16_t;
  std::array<uint64_t, 2> codes;
  std::memcpy(codes.data(), from, sizeof(codes));
  Eight found{};
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    found[i] = table[codes[i / 4] >> i % 4 * 16 & 0xFFFF];
  }
  std::memcpy(to, &found, sizeof(found));
}

void apply_table(const Tile& tile, const LoopNest& nest, const CodeTable& table) {
  const bool splat = nest.axes[0].step[0] == 0;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const auto* from = reinterpret_cast<const uint16_t*>(tile.at[0] + row * nest.axes[1].step[0]);
    auto* to = reinterpret_cast<uint16_t*>(tile.at[1] + row * nest.axes[1].step[1]);
    if (splat) {
      std::fill_n(to, tile.run, table[*from]);
      continue;
    }
    for (int64_t i = 0; i < tile.run; i += 8) {
      look_up_eight(from + i, to + i, table);
    }
  }
}

/// Tiles may lie far apart, and processors look ahead only once they have seen a run begin.
void prefetch(const Tile& tile, int operands) {
  constexpr int64_t kBegin = 1024, kLine = 64;
  for (int i = 0; i < operands; ++i) {
    for (int64_t at = 0; at < kBegin; at += kLine) {
      __builtin_prefetch(tile.at[i] + at);
    }
  }
}

class Pointwise final : public FastKernel {
 public:
  bool elementwise() const override { return true; }

  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    const ProgramOp& op = shape.op();
    if (!same_sticks(shape)) {
      return nullptr;
    }
    auto made = std::make_unique<Pointwise>();
    made->shape_ = shape;
    made->op_ = pointwise_row(op);
    if (op.inputs.size() == 1 && shape.output().format == DataFormat::SEN169_FP16) {
      made->fill_table();
    } else {
      made->kernel_ = shape.vectors->pointwise(op.info->id, shape.output().format);
      if (made->kernel_ == nullptr) {
        return nullptr;
      }
    }
    std::vector<const Geometry*> tensors;
    for (const int input : op.inputs) {
      tensors.push_back(&made->shape_.geometry[input]);
    }
    tensors.push_back(&made->shape_.output());
    for (const Unit& unit : units_of(shape)) {
      const LoopNest nest = nest_of(tensors, unit.box, shape.dims());
      if (nest.axes.empty()) {
        return nullptr;
      }
      made->units_.add(unit, Tiling(nest, kTilePoints, shape.output().lanes));
    }
    return made;
  }

  void run(const Places& places) const override {
    const auto& parts = units_.parts();
    const int64_t points = parts.empty() ? 1 : std::max<int64_t>(parts[0].tiling.points_per_tile(), 1);
    units_.for_each(std::max<int64_t>(kParallelPoints / points, 1),
                    [&](const TiledUnits::Part& part, int64_t tile) { run_tile(part, tile, places); });
    for (const TiledUnits::Part& part : parts) {
      fill_masks(part.unit, places);
    }
  }
  bool core_local() const override { return units_.core_local(); }
  void run_core(const Places& places, int core) const override {
    units_.for_core(core, [&](const TiledUnits::Part& part, int64_t tile) { run_tile(part, tile, places); });
    fill_masks(units_.parts()[core].unit, places);
  }

 private:
  void fill_table() {
    table_ = std::make_unique<CodeTable>();
    for (uint32_t code = 0; code < table_->size(); ++code) {
      (*table_)[code] = static_cast<uint16_t>(value_of_row(decode_element(DataFormat::SEN169_FP16, code)));
    }
  }

  /// The code the row gives when every input is `x`.
  uint32_t value_of_row(float x) const {
    return encode_element(shape_.output().format, without_nan_sign(op_.function(x, x, x, op_.k.data())));
  }

  void run_tile(const TiledUnits::Part& part, int64_t number, const Places& places) const {
    const LoopNest& nest = part.tiling.nest();
    std::array<std::byte*, kMaxOperands> base{};
    const int inputs = nest.operands - 1;
    for (int i = 0; i < inputs; ++i) {
      base[i] = part.unit.base(shape_, places, shape_.op().inputs[i]);
    }
    base[inputs] = part.unit.base(shape_, places, shape_.op().output);
    const Tile tile = part.tiling.tile(number, base);
    if (number + 1 < part.tiling.tiles()) {
      prefetch(part.tiling.tile(number + 1, base), nest.operands);
    }
    if (table_) {
      return apply_table(tile, nest, *table_);
    }
    PointwiseTile work{.out = tile.at[inputs],
                       .out_row = nest.axes[1].step[inputs],
                       .run = tile.run,
                       .rows = tile.rows,
                       .k = shape_.output().format == DataFormat::IEEE_INT32 ||
                                    shape_.output().format == DataFormat::SENUINT32
                                ? static_cast<const void*>(op_.whole_k.data())
                                : op_.k.data()};
    for (int i = 0; i < inputs; ++i) {
      work.in[i] = tile.at[i];
      work.splat[i] = nest.axes[0].step[i] == 0;
      work.in_row[i] = nest.axes[1].step[i];
    }
    kernel_(work);
  }

  void fill_masks(const Unit& unit, const Places& places) const {
    for (auto mask = shape_.op().masks.rbegin(); mask != shape_.op().masks.rend(); ++mask) {
      fill_masked(*mask, unit, places);
    }
  }

  /// Masked coordinates read as one value in every input, so that the result is one value too.
  void fill_masked(const Mask& mask, const Unit& unit, const Places& places) const {
    const Geometry& out = shape_.output();
    const uint32_t code = value_of_row(mask.value);
    std::byte* base = unit.base(shape_, places, shape_.op().output);
    Box box = unit.box;
    box.lower[mask.dim] = std::max(box.lower[mask.dim], mask.start);
    box.upper[mask.dim] = std::min(box.upper[mask.dim], mask.start + mask.count);
    std::vector<int> dims;
    for (int d = 0; d < shape_.dims(); ++d) {
      dims.push_back(d);
    }
    Coordinate g{};
    const Fault none;
    for_each_point(box, dims, g, none, [&](const Coordinate& at) {
      Coordinate local{};
      for (int d = 0; d < shape_.dims(); ++d) {
        local[d] = at[d] - unit.box.lower[d];
      }
      std::memcpy(base + out.offset(local, shape_.dims()) + local[out.stick_dim] % out.lanes * out.lane,
                  &code, out.element);
    });
  }

  FastShape shape_;
  PointwiseRow op_;
  TiledUnits units_;
  std::unique_ptr<CodeTable> table_;
  PointwiseKernel kernel_ = nullptr;
};

}  // namespace

std::unique_ptr<FastKernel> plan_pointwise(const FastShape& shape) {
  return Pointwise::plan(shape);
}

}  // namespace spyre::exec
