#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/expr.h"
#include "spyre/graph/graph.h"
#include "spyre/layout/device_layout.h"

/// From host index expressions to device coordinates.
///
/// An index counts elements of a host buffer. The card needs one simple coordinate per device dimension, the
/// same loops in every operand of an op. Both follow from cutting loops where a dimension ends:
///
///     x (50, 10, 200) flattened, plus y (500, 200), over {p: 500, s: 200}; both read 200*p + s
///
///       x is laid out [10, 4, 50, 64]: its strides 2000, 200, 1 (and 64 of the tiles) cut p at 10
///       p = 10*p.1 + p.0        ->  x [p.0, floor(s/64), p.1, Mod(s, 64)]
///                                   y [floor(s/64), p.1, p.0, Mod(s, 64)]     y's 500 rows read as 50 x 10
///
/// Views, transposes, slices, expands and reshapes cost nothing when this succeeds. When it does not, the
/// reason says why the card cannot address the tensor in this layout, and the layout pass tries another.
namespace spyre {

/// One device dimension of one access.
struct AccessDim {
  int64_t size = 1;
  int loop = -1;         ///< index into NormalLoops::loops; -1: the constant `offset`
  bool tile = false;     ///< the loop runs along the stick: this is the number of its stick
  int64_t offset = 0;    ///< where a slice starts
  std::string indirect;  ///< reads the position from this index value instead
  bool unused = false;   ///< holds nothing but at its start: the host has no such dimension

  friend bool operator==(const AccessDim&, const AccessDim&) = default;
};

/// How an operand walks its device memory; dims outermost first, the lane apart.
struct DeviceAccess {
  std::vector<AccessDim> dims;
  int lane = -1;  ///< the loop along the stick; -1: one element of each stick, lane 0
  int64_t lanes = 64;
  std::vector<int> lane_loops;  ///< of a narrowed stick: the loops g, h, e that were joined to `lane`

  bool uses(int loop) const;
  std::vector<int64_t> device_size() const;
  std::vector<Expr> coordinates(const std::vector<Loop>& loops) const;
};

struct OperandIndex {
  const DeviceLayout* layout;
  const Expr* index;
};

/// Loops cut so that every operand is addressable, and the operands in the order given. Loops of extent 1
/// are gone.
struct NormalAccess {
  std::vector<Loop> loops;
  std::vector<DeviceAccess> operands;
  std::vector<Expr>
      indices;  ///< the operands' host indices in terms of the cut loops; none if no sum gives them
};

/// Refuses (kUnsupported) what no cut makes addressable: descending indices, offsets inside a stick, a stick
/// shared by two loops, ragged reshapes.
Result<NormalAccess> normalize_access(const std::vector<Loop>& loops, std::span<const OperandIndex> operands);

}  // namespace spyre
