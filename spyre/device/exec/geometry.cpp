#include "spyre/device/exec/geometry.h"

#include <algorithm>

namespace spyre::exec {
namespace {

/// One stick dim in standard order, and coordinates that are the op's own, but for one that an index may give.
bool is_simple(const Tensor& tensor) {
  return tensor.stick.size() == 1 && tensor.lane_of.empty() &&
         std::none_of(tensor.dims.begin(), tensor.dims.end(),
                      [](const TensorDim& d) { return d.window.has_value(); }) &&
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
  g.format = tensor.format;
  g.residence = tensor.residence;
  g.element = bits_of(tensor.format) / 8;
  g.per_step.fill(1);
  if (!is_simple(tensor)) {
    return g;
  }
  g.stick_dim = tensor.stick[0].dim;
  g.lanes = tensor.stick[0].size;
  for (const TensorDim& d : tensor.dims) {
    if (d.dim < dims && d.scale > 0 && !d.index_outer) {
      g.present[d.dim] = true;
      g.step[d.dim] = d.stride * g.element;
      g.per_step[d.dim] = d.per_stick;
    }
    if (tensor.through && d.indexed) {
      g.gathered = d.dim;
      g.index_tensor = tensor.through->index_tensor;
      g.page = tensor.through->page;
      g.rows = d.gap_declared ? d.extent * d.per_stick / g.page : 0;
    }
  }
  g.lane = g.present[g.stick_dim] ? g.element : 0;
  const bool whole_sticks = !g.present[g.stick_dim] || g.per_step[g.stick_dim] == g.lanes;
  g.plain = whole_sticks && !tensor.through;
  g.gathered = whole_sticks ? g.gathered : -1;
  return g;
}

}  // namespace spyre::exec
