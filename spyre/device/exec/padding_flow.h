#pragma once

#include <string>
#include <vector>

#include "spyre/device/exec/bound_op.h"
#include "spyre/device/exec/memory_shape.h"
#include "spyre/device/exec/pad_value.h"

/// How padding passes through an op: from what is known of its inputs, whether padding reaches a result that
/// is data, and what the padding of its result holds.
namespace spyre::exec {

/// The padding of a tensor, by dim of the op.
using PaddedInput = std::vector<Padding>;

/// Input `input` lets values beyond its logical extent into the result.
struct PaddingLeak {
  int input = 0;
  std::string detail;
};

/// Reductions fold padding unless it is masked or leaves the result as it is; a contraction does unless one
/// of the two factors is zero there and the other was written. Pointwise ops keep padding where it is.
std::vector<PaddingLeak> padding_leaks(const BoundOp& bound, const std::vector<PaddedInput>& inputs);

/// The result has padding where an input it takes that dim from has.
PaddedInput padding_of_result(const BoundOp& bound, const std::vector<PaddedInput>& inputs);

}  // namespace spyre::exec
