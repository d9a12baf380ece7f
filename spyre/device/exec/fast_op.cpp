#include "spyre/device/exec/fast_op.h"

#include <algorithm>

namespace spyre::exec {

bool FastShape::all_in_hbm() const {
  return std::all_of(geometry.begin(), geometry.end(),
                     [](const Geometry& g) { return g.residence == Residence::kHbm; });
}

std::byte* Unit::base(const FastShape& shape, const Places& places, int tensor) const {
  if (core >= 0) {
    return places.at(tensor, core);
  }
  Coordinate lower = box.lower;
  if (const int gathered = shape.geometry[tensor].gathered; gathered >= 0) {
    lower[gathered] = 0;
  }
  return places.origin[tensor] + shape.geometry[tensor].offset(lower, shape.dims());
}

std::vector<Unit> units_of(const FastShape& shape) {
  std::vector<Unit> units;
  if (shape.all_in_hbm()) {
    Unit whole{.box = shape.boxes.front()};
    for (const Box& box : shape.boxes) {
      for (int d = 0; d < shape.dims(); ++d) {
        whole.box.lower[d] = std::min(whole.box.lower[d], box.lower[d]);
        whole.box.upper[d] = std::max(whole.box.upper[d], box.upper[d]);
      }
    }
    units.push_back(whole);
    return units;
  }
  for (int core = 0; core < shape.cores(); ++core) {
    units.push_back({.core = core, .box = shape.boxes[core]});
  }
  return units;
}

}  // namespace spyre::exec
