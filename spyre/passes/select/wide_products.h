#pragma once

#include <string>

#include "spyre/passes/select/op_emitter.h"

/// Products of fp32 matrices on a card that multiplies 16-bit values (ADR 0037).
///
/// Each operand is brought into the 16-bit range by a power of two of its own for every row of x and every column of w,
/// then written as a sum of 16-bit parts of ten bits each:
///
///     x = r * (x0 + x1 + x2)     |x1| <= 2^-10 |x0|,  |x2| <= 2^-10 |x1|      three parts are x exactly
///     w = c * (w0 + w1 + w2)
///     x w = r c (x0 w0 + (x0 w1 + x1 w0) + (x0 w2 + x1 w1 + x2 w0))
///
/// The products of parts have fp32 results, are added from the smallest to the largest, and scaled back.
namespace spyre {

/// How much of an fp32 product is computed: what `torch.set_float32_matmul_precision` calls medium, high, highest.
enum class Parts : uint8_t { kOne = 1, kTwo = 2, kThree = 3 };

/// The product of x (rows) and w (columns), both held in fp32 and summed over `loop`, in fp32.
Operand wide_product(OpEmitter& emit, const Operand& x, const Operand& w, const std::string& loop,
                     Parts parts);

/// The product of integers, exact over all 32 bits and wrapping as PyTorch's 32-bit integers do. Operands are written in
/// digits of eight bits, whose products 16 bits hold and whose sums fp32 holds; refused where the sums are longer.
Result<Operand> integer_product(OpEmitter& emit, const Operand& x, const Operand& w, const std::string& loop);

}  // namespace spyre
