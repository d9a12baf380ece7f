#include <algorithm>
#include <array>
#include <cstring>

#include "spyre/device/exec/access.h"
#include "spyre/device/exec/kernels.h"
#include "spyre/device/exec/loop_nest.h"
#include "spyre/program/element.h"

// A conversion changes the width of elements and their places, but only inside a *block*: the elements of the wider
// stick count of the two formats, which is one stick on one side and one or two on the other.
//
//     dl16tofp32     one stick of 64 codes    ->    two sticks of 32 numbers
//     fp32toint32    one stick of 32          ->    one stick of 32
//
// A block is decoded, its elements change places in groups, and it is encoded again.
namespace spyre::exec {
namespace {

constexpr int64_t kMostElements = kStickBytes.count();  ///< of a block: a stick of bytes
constexpr int64_t kGroup = 4;                           ///< elements that every conversion keeps together

using Numbers = std::array<float, kMostElements>;

class Conversion final : public FastKernel {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    const Geometry &in = shape.input(0), &out = shape.output();
    if (in.lane == 0 || out.lane == 0 || in.stick_dim != out.stick_dim) {
      return nullptr;
    }
    auto made = std::make_unique<Conversion>();
    made->shape_ = shape;
    made->block_ = std::max(in.lanes, out.lanes);
    for (int64_t group = 0; group < made->block_ / kGroup; ++group) {
      made->place_[group] = converted_position(shape.op().info->id, group * kGroup);
    }
    for (const Unit& unit : units_of(shape)) {
      const LoopNest nest = nest_of_blocks(in, out, unit.box, shape.dims(), made->block_);
      if (nest.axes.empty()) {
        return nullptr;
      }
      made->units_.add(unit, Tiling(nest, kTilePoints / made->block_, 1));
    }
    return made;
  }

  void run(const Places& places) const override {
    units_.for_each(kParallelPoints / kTilePoints,
                    [&](const TiledUnits::Part& part, int64_t tile) { run_tile(part, tile, places); });
  }
  bool core_local() const override { return units_.core_local(); }
  void run_core(const Places& places, int core) const override {
    units_.for_core(core, [&](const TiledUnits::Part& part, int64_t tile) { run_tile(part, tile, places); });
  }

 private:
  void run_tile(const TiledUnits::Part& part, int64_t number, const Places& places) const {
    const LoopNest& nest = part.tiling.nest();
    const Tile tile = part.tiling.tile(number, {part.unit.base(shape_, places, shape_.op().inputs[0]),
                                                part.unit.base(shape_, places, shape_.op().output)});
    for (int64_t row = 0; row < tile.rows; ++row) {
      for (int64_t i = 0; i < tile.run; ++i) {
        convert(tile.at[0] + row * nest.axes[1].step[0] + i * nest.axes[0].step[0],
                tile.at[1] + row * nest.axes[1].step[1] + i * nest.axes[0].step[1]);
      }
    }
  }

  void convert(const std::byte* from, std::byte* to) const {
    const Geometry &in = shape_.input(0), &out = shape_.output();
    if (in.format == DataFormat::SEN169_FP16 && out.format == DataFormat::IEEE_FP32) {
      return shape_.vectors->split_stick(from, to, to + out.step[out.stick_dim]);
    }
    if (in.format == DataFormat::IEEE_FP32 && out.format == DataFormat::SEN169_FP16) {
      return shape_.vectors->join_sticks(from, from + in.step[in.stick_dim], to);
    }
    alignas(64) Numbers given, placed;
    for (int64_t first = 0; first < block_; first += in.lanes) {
      decode(from + first / in.lanes * in.step[in.stick_dim], given.data() + first);
    }
    for (int64_t group = 0; group < block_ / kGroup; ++group) {
      std::memcpy(placed.data() + place_[group], given.data() + group * kGroup, kGroup * sizeof(float));
    }
    for (int64_t first = 0; first < block_; first += out.lanes) {
      encode(placed.data() + first, to + first / out.lanes * out.step[out.stick_dim]);
    }
  }

  void decode(const std::byte* stick, float* numbers) const {
    const Geometry& in = shape_.input(0);
    if (in.format == DataFormat::SEN169_FP16) {
      return shape_.vectors->widen(stick, numbers, in.lanes);
    }
    if (in.format == DataFormat::IEEE_FP32) {
      std::memcpy(numbers, stick, kStickBytes.count());
      return;
    }
    if (in.format == DataFormat::IEEE_INT32) {
      std::array<int32_t, kStickBytes.count() / sizeof(int32_t)> whole;
      std::memcpy(whole.data(), stick, sizeof(whole));
      std::copy(whole.begin(), whole.end(), numbers);
      return;
    }
    for (int64_t i = 0; i < in.lanes; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, stick + i * in.element, in.element);
      numbers[i] = program::decode_element(in.format, bits);
    }
  }

  void encode(const float* numbers, std::byte* stick) const {
    const Geometry& out = shape_.output();
    if (out.format == DataFormat::SEN169_FP16) {
      return shape_.vectors->narrow(numbers, stick, out.lanes);
    }
    if (out.format == DataFormat::IEEE_FP32) {
      auto* to = reinterpret_cast<float*>(stick);
      std::transform(numbers, numbers + out.lanes, to, without_nan_sign);
      return;
    }
    for (int64_t i = 0; i < out.lanes; ++i) {
      const uint32_t bits = converted_code(out.format, numbers[i]);
      std::memcpy(stick + i * out.element, &bits, out.element);
    }
  }

  FastShape shape_;
  int64_t block_ = 0;
  std::array<int64_t, kMostElements / kGroup> place_{};  ///< where each group of a block goes
  TiledUnits units_;
};

}  // namespace

std::unique_ptr<FastKernel> plan_conversion(const FastShape& shape) {
  return Conversion::plan(shape);
}

}  // namespace spyre::exec
