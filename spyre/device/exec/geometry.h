#pragma once

#include <array>

#include "spyre/device/exec/bound_op.h"

namespace spyre::exec {

/// A tensor's layout as one distance per dim, for executors that hoist addresses out of their loops.
///
/// Most tensors are *plain*: one stick dim, standard order inside the stick, no window, no index. The element
/// at a coordinate c (relative to where the tensor starts) then lies
///
///     sum over dims  c(d) div per_step(d) * step(d)   +   c(stick) mod lanes * lane       bytes
///
/// away, and dims that the tensor lacks have distance 0. The table of a gather is the same but for one dim, whose coordinate
/// an index tensor gives. Other tensors are left to the interpreter.
struct Geometry {
  bool plain = false;
  DataFormat format = DataFormat::INVALID;
  Residence residence = Residence::kHbm;
  int element = 0;    ///< bytes of one
  int stick_dim = 0;  ///< of the op; where the tensor lacks it, `lane` is 0
  int64_t lanes = 0;
  int64_t lane = 0;  ///< bytes from one lane to the next along stick_dim
  std::array<int64_t, kMaxDims> step{};
  std::array<int64_t, kMaxDims> per_step{};
  std::array<bool, kMaxDims> present{};
  // Of the value tensor of a gather or scatter, which is never plain:
  int gathered = -1;      ///< the dim whose coordinate is `index * page + g mod page`; else -1
  int index_tensor = -1;  ///< where the index is
  int64_t page = 1;
  int64_t rows = 0;  ///< pages of the table; 0 where the artifact does not say

  /// Bytes from the start to a coordinate whose stick dim is at a stick boundary.
  int64_t offset(const Coordinate& c, int dims) const;
  /// Bytes from the start to past the last stick of an extent; 0 if it is empty.
  int64_t reach(const Coordinate& extent, int dims) const;
  /// Same bytes for the same coordinates, given the same start.
  bool same_places(const Geometry& other) const;
};

Geometry geometry_of(const Tensor& tensor, int dims);

}  // namespace spyre::exec
