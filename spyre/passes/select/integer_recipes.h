#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "spyre/passes/select/op_emitter.h"

/// Integers of 32 bits, exactly. The card adds and multiplies them as they are and wraps as PyTorch's 32-bit
/// integers do; all else it computes in fp32, which holds whole numbers up to 2^24. Larger ones are compared
/// by their difference, chosen by a product with 0 or 1, and folded in two digits:
///
///     maximum(x, y)   y + (x > y) * (x - y)
///     max over k      x = 65536 * high + low:  the largest high, then the largest low beside it
///
/// Operands that are known to be small (OpEmitter::is_exact_float) take the short way through fp32.
namespace spyre {

/// A pointwise operation of integers; none where fp32 gives the same.
std::optional<Operand> integer_op(OpEmitter& emit, BodyOp op, const std::vector<Operand>& operands);

/// x, no less than `low` and no more than `high`.
Operand integer_clamp(OpEmitter& emit, const Operand& x, double low, double high);

/// `kind` is sum, prod, max or min, over all reduced loops of the node.
Result<Operand> integer_fold(OpEmitter& emit, OpId kind, const Operand& x);

/// Truth values in fp32: where x is the extreme (max or min) of a loop.
Operand is_integer_extreme(OpEmitter& emit, const Operand& x, OpId extreme, const std::string& loop);

}  // namespace spyre
