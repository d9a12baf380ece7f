#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/base/units.h"
#include "spyre/graph/expr.h"

/// Work division, as data: which loops one operation has, how its tensors lie in device memory, and what the
/// answer must respect. No graph in sight, so that a problem fits on a screen:
///
///     add over {c0: 512, c1: 1024}, fp16, device [16, 512, 64] = [floor(c1/64), c0, Mod(c1, 64)]
///     answer: {c0: 32, c1: 1}: each of 32 cores takes 16 rows of 1024
///
/// Vocabulary, used by every file of this folder:
///
///  - *axis*: a loop of the operation, counted in elements.
///  - *split*: into how many equal slices an axis is cut; the product of all splits is the number of cores.
///  - *stick axis*: an axis that runs along the stick of some tensor. A core must own whole sticks, so such
///  an
///    axis is counted and cut in sticks (see axis_facts.h).
///  - *reduction axis*: an axis that does not choose a stick of the output. Cores that split one hold partial
///    results, and the card combines partial results of one axis only.
///  - *span*: the stretch of device memory of one tensor that one core reaches (see span.h).
///  - *floor*: the smallest split of an axis that keeps every span within the limit.
namespace spyre {

/// Axis name -> split. Maps that we return name every axis; in maps that we are given an absent axis has
/// split 1.
using Splits = std::map<std::string, int64_t, std::less<>>;

int64_t split_of(const Splits& splits, std::string_view axis);
/// The product of all splits.
int64_t cores_used(const Splits& splits);
/// `{c0: 32, c1: 1}`
std::string to_string(const Splits& splits);

struct DivisionAxis {
  std::string name;
  int64_t extent = 1;  ///< elements; the largest it can be when the axis is dynamic
  /// Set on a dynamic axis: every extent met at run time is a multiple of this, so only its divisors split
  /// all of them evenly.
  std::optional<int64_t> granularity;
};

/// One operand. A tensor read or written through an index tensor (a coordinate with `IndirectAccess`) is
/// exempt from span checks: where it is touched is known only at run time.
struct DivisionTensor {
  std::string name;
  std::vector<int64_t> device_size;  ///< outermost first; the last entry is the elements of one stick
  std::vector<Expr> coordinates;     ///< over axis names, one per entry; each a sum of single-axis terms
  int64_t itemsize = 2;              ///< bytes of one element

  bool indirect() const;
  /// True when some coordinate depends on the axis.
  bool uses(std::string_view axis) const;
};

enum class OpRole : uint8_t {
  kPointwise,
  kReduction,
  kMatmul,  ///< two inputs; output axes batch..., M, N and one reduction axis K
};

struct DivisionProblem {
  std::string op;
  OpRole role = OpRole::kPointwise;
  std::vector<DivisionAxis> axes;       ///< in iteration order: outer output loops first, reductions last
  std::vector<DivisionTensor> tensors;  ///< inputs in operand order, then the output

  std::vector<std::pair<std::string, int64_t>> hints;  ///< splits the user asks for, in their order
  std::set<std::string, std::less<>> blocked;          ///< axes that must stay whole
  std::map<std::string, std::vector<int64_t>, std::less<>> allowed;  ///< the only splits an axis may have

  int64_t cores = spyre_card().cores;  ///< to divide over: `SENCORES`
  Bytes span_limit = spyre_card().span_limit;

  const DivisionTensor& output() const { return tensors.back(); }
  const DivisionAxis* find_axis(std::string_view name) const;
  /// True when `blocked` and `allowed` let the axis have this split.
  bool permits(std::string_view axis, int64_t split) const;
};

/// What every function of this folder relies on: a core at least, an output, one coordinate per
/// device dimension, and no name that is not an axis. Also refuses what cannot be divided at all: a dynamic
/// stick axis, a dynamic matmul.
Status check_problem(const DivisionProblem& problem);

}  // namespace spyre
