#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "spyre/passes/select/op_emitter.h"

/// Bits of 32-bit integers by arithmetic, exactly: the card has no operation that sees them.
///
///     x >> k        floor(x / 2^k), guessed in fp32, then put right by what the guess leaves
///     x & 0x0ff0    (x mod 2^12) - (x mod 2^4): one difference for each run of ones, x mod 2^k = x - (x >> k << k)
///     x & y         the sum of 2^k * bit k of x * bit k of y, all k at once along a loop of their own
///     x | y         x + y - (x & y)             x ^ y    x + y - 2 (x & y)            ~x    -1 - x
namespace spyre {

/// bitwise_and, _or, _xor, _not, _left_shift or _right_shift; none for other operations. Shifts by less than 0 or more
/// than 31 leave nothing but the sign, as PyTorch's do.
std::optional<Operand> bit_op(OpEmitter& emit, BodyOp op, const std::vector<Operand>& operands);

}  // namespace spyre
