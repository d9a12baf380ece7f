#include "spyre/device/exec/geometry.h"

#include <algorithm>

namespace spyre::exec {
namespace {

bool is_plain_stick(const Tensor& tensor) {
  const auto odd = [](const TensorDim& d) { return d.window || d.indexed || d.index_outer; };
  return tensor.stick.size() == 1 && tensor.lane_of.empty() && !tensor.through && !tensor.is_index &&
         std::none_of(tensor.dims.begin(), tensor.dims.end(), odd) &&
         tensor.stick[0].size * bits_of(tensor.format) / 8 == kStickBytes.count();
}

}  // namespace

int64_t Geometry::offset(const Coordinate& c, int dims) const {
  int64_t bytes = 0;
  for (int d = 0; d < dims; ++d) {
    bytes += c[d] / per_step[d] * step[d];
  }
  return bytes;
}

int64_t Geometry::reach(const Coordinate& extent, int dims) const {
  int64_t bytes = kStickBytes.count();
  for (int d = 0; d < dims; ++d) {
    if (extent[d] <= 0) {
      return 0;
    }
    bytes += (extent[d] - 1) / per_step[d] * step[d];
  }
  return bytes;
}

bool Geometry::same_places(const Geometry& other) const {
  return residence == other.residence && element == other.element && stick_dim == other.stick_dim &&
         lane == other.lane && step == other.step && per_step == other.per_step;
}

Geometry geometry_of(const Tensor& tensor, int dims) {
  Geometry g;
  g.plain = is_plain_stick(tensor);
  g.format = tensor.format;
  g.residence = tensor.residence;
  g.element = bits_of(tensor.format) / 8;
  g.per_step.fill(1);
  if (!g.plain) {
    return g;
  }
  g.stick_dim = tensor.stick[0].dim;
  g.lanes = tensor.stick[0].size;
  for (const TensorDim& d : tensor.dims) {
    if (d.dim < dims && d.scale > 0) {
      g.present[d.dim] = true;
      g.step[d.dim] = d.stride * g.element;
      g.per_step[d.dim] = d.per_stick;
    }
  }
  g.lane = g.present[g.stick_dim] ? g.element : 0;
  g.plain = g.present[g.stick_dim] ? g.per_step[g.stick_dim] == g.lanes : true;
  return g;
}

}  // namespace spyre::exec
