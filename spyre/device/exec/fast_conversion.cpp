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
constexpr int64_t kWords = 32;                          ///< numbers of a stick in 32 bits

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
      return convert_to_fp32(from, to);
    }
    if (in.format == DataFormat::IEEE_FP32 && out.format == DataFormat::SEN169_FP16) {
      return convert_from_fp32(from, to);
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

  /// The most frequent pair: groups move on their way to the stick, or from it.
  void convert_to_fp32(const std::byte* from, std::byte* to) const {
    alignas(64) std::array<float, kWords * 2> given;
    shape_.vectors->widen(from, given.data(), std::ssize(given));
    for (int64_t e = 0; e < std::ssize(given); e += kGroup) {
      std::array<float, kGroup> group;
      std::transform(given.data() + e, given.data() + e + kGroup, group.data(), without_nan_sign);
      std::memcpy(to + word_offset(shape_.output(), place_[e / kGroup]), group.data(), sizeof(group));
    }
  }

  void convert_from_fp32(const std::byte* from, std::byte* to) const {
    alignas(64) std::array<float, kWords * 2> placed;
    for (int64_t e = 0; e < std::ssize(placed); e += kGroup) {
      std::memcpy(placed.data() + place_[e / kGroup], from + word_offset(shape_.input(0), e),
                  kGroup * sizeof(float));
    }
    shape_.vectors->narrow(placed.data(), to, std::ssize(placed));
  }

  /// Where an element of a block is that lies in two sticks of 32-bit numbers.
  static int64_t word_offset(const Geometry& words, int64_t e) {
    return e / kWords * words.step[words.stick_dim] + e % kWords * static_cast<int64_t>(sizeof(float));
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
