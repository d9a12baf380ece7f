#pragma once

#include "spyre/passes/select/op_emitter.h"

/// What recipes of integers are made of: the operations that the card has for them, and the way to fp32 and back.
namespace spyre::integer_steps {

constexpr double kExactInFp32 = 1 << 24;  ///< fp32 holds every whole number up to here
constexpr double kBase = 65536;           ///< of the two digits of an integer

Operand integer(OpEmitter& emit, double value);
Operand number(OpEmitter& emit, double value);
Operand as_float(OpEmitter& emit, const Operand& x);
/// Of whole numbers in fp32.
Operand as_integer(OpEmitter& emit, const Operand& x);

// These wrap, as PyTorch's 32-bit integers do.
Operand sum(OpEmitter& emit, const Operand& x, const Operand& y);
Operand product(OpEmitter& emit, const Operand& x, const Operand& y);
Operand negative(OpEmitter& emit, const Operand& x);
Operand difference(OpEmitter& emit, const Operand& x, const Operand& y);

/// x = 65536 * high + low, 0 <= low < 65536, both in fp32.
struct Digits {
  Operand high, low;
};
Digits digits_of(OpEmitter& emit, const Operand& x);
/// base * high + low, of whole numbers in fp32.
Operand joined(OpEmitter& emit, const Operand& high, const Operand& low, double base);

}  // namespace spyre::integer_steps
