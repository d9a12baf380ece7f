#pragma once

#include "spyre/passes/select/op_emitter.h"

/// Functions that the card has not, or in 16 bits only, from operations that it has in fp32.
///
/// Every recipe keeps what the function is for: relative accuracy where its value is small, and its values at the
/// ends of the range. Errors against exact values, in units of fp32's last place, are a few at most; docs/coverage.md
/// has the measured ones. Operands are fp32 unless said otherwise.
namespace spyre {

/// A constant, held as `like` is.
Operand number(OpEmitter& emit, double value, const Operand& like);

/// Accurate up to 2^22 in magnitude: quarter turns are taken out in parts that are exact.
Operand sine(OpEmitter& emit, const Operand& x);
Operand cosine(OpEmitter& emit, const Operand& x);

Operand error_function(OpEmitter& emit, const Operand& x);
/// x * Phi(x): without cancellation below zero.
Operand wide_gelu(OpEmitter& emit, const Operand& x);

/// From -inf at 0 to inf at inf; NaN below.
Operand wide_logarithm(OpEmitter& emit, const Operand& x);
/// log(1 + x), where 1 + x would round x away.
Operand log_of_one_plus(OpEmitter& emit, const Operand& x);

/// exp(x) - 1, where exp(x) would round x away.
Operand exp_minus_one(OpEmitter& emit, const Operand& x);
Operand power_of_two(OpEmitter& emit, const Operand& x);
Operand wide_tanh(OpEmitter& emit, const Operand& x);
/// log(1 + exp(beta x)) / beta, and x itself beyond the threshold.
Operand wide_softplus(OpEmitter& emit, const Operand& x, double beta, double threshold);

/// What is left of x after whole y: with the sign of x, or with that of y. Exact for quotients up to 2^24; beyond, within
/// a millionth of y.
Operand truncated_remainder(OpEmitter& emit, const Operand& x, const Operand& y);
Operand floored_remainder(OpEmitter& emit, const Operand& x, const Operand& y);
/// The whole number of y in x, from below.
Operand floored_quotient(OpEmitter& emit, const Operand& x, const Operand& y);

}  // namespace spyre
