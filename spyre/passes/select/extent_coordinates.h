#pragma once

#include <optional>
#include <vector>

#include "spyre/graph/graph.h"

namespace spyre {

/// The coordinates of an access along the dimensions of its buffer, or none where it does not keep to those that have an
/// extent. Fixed dimensions may be merged with one another: then a coordinate runs past the end of its dimension.
///
///     float16[4, e0, 64]     element 8192*p0 + 64*p1 + p2 + 64     ->     p0, p1 + 1, p2
std::optional<std::vector<Expr>> extent_coordinates(const Buffer& buffer, const Expr& index,
                                                    const std::vector<Loop>& loops);

}  // namespace spyre
