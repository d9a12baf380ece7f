#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spyre/layout/host_type.h"

namespace spyre {

/// What a tensor holds that nobody computes: the same value everywhere, or a ramp along its last axis:
/// start, start + step, start + 2 * step, ...
struct Fill {
  double start = 0;
  double step = 0;

  /// As values that a program can tell apart: -0.0 is not 0.0, and NaN is NaN.
  friend bool operator==(const Fill& a, const Fill& b);
};

/// `count` elements of a host tensor whose last axis is `row` long. A number that the type cannot hold
/// becomes the nearest that it can, as PyTorch's `full` rounds; NaN as an integer is 0.
std::vector<std::byte> filled_elements(const Fill& fill, HostType type, int64_t count, int64_t row);

}  // namespace spyre
