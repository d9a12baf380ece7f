#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "spyre/base/thread_pool.h"
#include "spyre/device/exec/access.h"
#include "spyre/device/exec/fast_op.h"
#include "spyre/program/element.h"

// The two steps of a layer norm behind its moments. A *row* is what shares one pair of moments: all dims but the stick.
namespace spyre::exec {
namespace {

/// A stick as numbers.
using StickOfNumbers = std::array<float, kMostLanes>;

/// What both steps have in common: a loop over rows, and elements of them as numbers.
class OverRows : public FastKernel {
 public:
  explicit OverRows(const FastShape& shape) : shape_(shape), units_(units_of(shape)) {}

  bool elementwise() const override { return true; }
  bool core_local() const override { return units_.front().core >= 0; }

  void run(const Places& places) const override {
    for (const Unit& unit : units_) {
      const int64_t points = std::max<int64_t>(unit.box.extent(shape_.output().stick_dim), 1);
      parallel_for(rows_of(unit), std::max<int64_t>(kParallelPoints / points, 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       run_row(unit, coordinate(unit, row), places);
                     }
                   });
    }
  }
  void run_core(const Places& places, int core) const override {
    for (int64_t row = 0; row < rows_of(units_[core]); ++row) {
      run_row(units_[core], coordinate(units_[core], row), places);
    }
  }

 protected:
  virtual void run_row(const Unit& unit, Coordinate local, const Places& places) const = 0;

  const FastShape& shape() const { return shape_; }
  const std::vector<Unit>& units() const { return units_; }

  /// Whether all tensors are plain and of the result's format, and have the result's stick dim or none.
  bool fits() const {
    const auto known = [&](const Geometry& g) {
      return g.plain && g.format == shape_.output().format && (g.lane == 0 || g.stick_dim == stick_dim());
    };
    const bool narrow = shape_.output().format == DataFormat::SEN169_FP16;
    return (narrow || shape_.output().format == DataFormat::IEEE_FP32) && shape_.op().masks.empty() &&
           std::ranges::all_of(shape_.geometry, known);
  }

  /// Whether the result has sticks of its own, and no core a part of one.
  bool writes_sticks() const {
    const Geometry& out = shape_.output();
    return out.lane != 0 && std::ranges::all_of(units_, [&](const Unit& unit) {
             return unit.box.extent(out.stick_dim) % out.lanes == 0;
           });
  }

  int stick_dim() const { return shape_.output().stick_dim; }

  /// The stick of an input at a coordinate, or the one element that stands for all of it.
  const std::byte* place(const Unit& unit, int input, const Coordinate& local, const Places& places) const {
    return unit.base(shape_, places, shape_.op().inputs[input]) +
           shape_.input(input).offset(local, shape_.dims());
  }
  std::byte* result_place(const Unit& unit, const Coordinate& local, const Places& places) const {
    return unit.base(shape_, places, shape_.op().output) + shape_.output().offset(local, shape_.dims());
  }

  /// The number in a lane.
  float number(const std::byte* stick, int lane) const {
    uint32_t bits = 0;
    const int bytes = shape_.output().element;
    std::memcpy(&bits, stick + lane * bytes, bytes);
    return decode_element(shape_.output().format, bits);
  }
  void load(const Geometry& g, const std::byte* from, StickOfNumbers& to) const {
    if (g.lane == 0) {
      std::fill_n(to.begin(), g.lanes, number(from, 0));
    } else if (g.format == DataFormat::SEN169_FP16) {
      shape_.vectors->widen(from, to.data(), g.lanes);
    } else {
      std::memcpy(to.data(), from, g.lanes * sizeof(float));
    }
  }

  void store(const StickOfNumbers& stick, std::byte* to) const {
    const Geometry& out = shape_.output();
    if (out.format == DataFormat::SEN169_FP16) {
      shape_.vectors->narrow(stick.data(), to, out.lanes);
    } else {
      std::memcpy(to, stick.data(), out.lanes * sizeof(float));
    }
  }

 private:
  int64_t rows_of(const Unit& unit) const {
    int64_t rows = 1;
    for (int d = 0; d < shape_.dims(); ++d) {
      rows *= d == stick_dim() ? 1 : unit.box.extent(d);
    }
    return rows;
  }
  Coordinate coordinate(const Unit& unit, int64_t row) const {
    Coordinate local{};
    for (int d = shape_.dims(); d-- > 0;) {
      if (d != stick_dim()) {
        local[d] = row % unit.box.extent(d);
        row /= unit.box.extent(d);
      }
    }
    return local;
  }

  FastShape shape_;
  std::vector<Unit> units_;
};

/// 1 / sqrt(E[x^2] - E[x]^2 + eps), of moments in lanes 0 and 1; into every lane.
class Scale final : public OverRows {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<Scale>(shape);
    return shape.input(0).lane == 0 && made->writes_sticks() && made->fits() ? std::move(made) : nullptr;
  }
  using OverRows::OverRows;

 private:
  void run_row(const Unit& unit, Coordinate local, const Places& places) const override {
    const std::byte* moments = place(unit, 0, local, places);
    const float mean = number(moments, 0), square = number(moments, 1);
    const float scale = 1.0f / std::sqrt(square - mean * mean + shape().op().k[0]);
    alignas(64) StickOfNumbers stick;
    stick.fill(without_nan_sign(scale));
    for (; local[stick_dim()] < unit.box.extent(stick_dim()); local[stick_dim()] += shape().output().lanes) {
      store(stick, result_place(unit, local, places));
    }
  }
};

/// (x - mean) * scale * weight + bias.
class Norm final : public OverRows {
 public:
  static std::unique_ptr<FastKernel> plan(const FastShape& shape) {
    auto made = std::make_unique<Norm>(shape);
    return shape.input(1).lane == 0 && made->writes_sticks() && made->fits() ? std::move(made) : nullptr;
  }
  using OverRows::OverRows;

 private:
  void run_row(const Unit& unit, Coordinate local, const Places& places) const override {
    const Geometry& out = shape().output();
    alignas(64) StickOfNumbers x, scale, weight, bias;
    const float mean = number(place(unit, 1, local, places), 0);
    for (; local[stick_dim()] < unit.box.extent(stick_dim()); local[stick_dim()] += out.lanes) {
      load(shape().input(0), place(unit, 0, local, places), x);
      load(shape().input(2), place(unit, 2, local, places), scale);
      load(shape().input(3), place(unit, 3, local, places), weight);
      load(shape().input(4), place(unit, 4, local, places), bias);
      for (int64_t i = 0; i < out.lanes; ++i) {
        x[i] = without_nan_sign((x[i] - mean) * scale[i] * weight[i] + bias[i]);
      }
      store(x, result_place(unit, local, places));
    }
  }
};

}  // namespace

std::unique_ptr<FastKernel> plan_layernorm(const FastShape& shape) {
  switch (shape.op().info->id) {
    case OpId::exx2:
      return plan_reduction(shape);
    case OpId::layernormscale:
      return Scale::plan(shape);
    default:
      return Norm::plan(shape);
  }
}

}  // namespace spyre::exec
