#include "spyre/passes/select/bit_recipes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "spyre/passes/select/integer_steps.h"

namespace spyre {
namespace {

using namespace integer_steps;

constexpr int kBits = 32, kDigitBits = 16;

// 2^k of whole numbers 0 <= k <= 16 in fp32. exp is right to a millionth, so the nearest whole number is the power.
Operand whole_power_of_two(OpEmitter& emit, const Operand& k) {
  const Operand near = emit.op(OpId::exp, {emit.op(OpId::mul, {k, number(emit, std::numbers::ln2)})});
  return emit.op(OpId::floor, {emit.op(OpId::add, {near, number(emit, 0.5)})});
}

// floor(x / p) for a power p of two up to 2^16, in fp32. What the guess leaves is so small that fp32 holds it.
Operand shifted_right(OpEmitter& emit, const Operand& x, const Operand& p) {
  const auto quotient = [&](const Operand& value) {
    Operand ratio = emit.op(OpId::floor, {emit.op(OpId::realdiv, {as_float(emit, value), p})});
    // Where p may be 1: what fp32 rounds up to 2^31 is no integer of 32 bits.
    if (!p.is_constant())
      ratio = emit.op(OpId::clip, {ratio}, std::nullopt, {{"clipMin", -0x1p31}, {"clipMax", 0x1p31 - 128}});
    return as_integer(emit, ratio);
  };
  const Operand whole = p.is_constant() ? integer(emit, p.value) : as_integer(emit, p);
  const Operand guess = quotient(x);
  return sum(emit, guess, quotient(difference(emit, x, product(emit, guess, whole))));
}

Operand shifted_right(OpEmitter& emit, Operand x, int bits) {
  const double most = std::ceil(std::min(x.most, 0x1p31) / std::exp2(bits));
  for (; bits > 0; bits -= kDigitBits)
    x = shifted_right(emit, x, number(emit, std::exp2(std::min(bits, kDigitBits))));
  x.most = most;
  return x;
}

Operand bit_value(OpEmitter& emit, int bits) {
  return integer(emit, bits == kBits - 1 ? -0x1p31 : std::exp2(bits));
}

Operand shifted_left(OpEmitter& emit, const Operand& x, int bits) {
  return product(emit, x, bit_value(emit, bits));
}

// x mod 2^bits, as a number of 32 bits.
Operand low_bits(OpEmitter& emit, const Operand& x, int bits) {
  if (bits == 0) return integer(emit, 0);
  if (bits == kBits) return x;
  return difference(emit, x, shifted_left(emit, shifted_right(emit, x, bits), bits));
}

struct Run {
  int begin, end;
};
std::vector<Run> runs_of_ones(uint32_t mask) {
  std::vector<Run> runs;
  for (int at = 0; at < kBits && (mask >> at) != 0;) {
    const int begin = at + std::countr_zero(mask >> at);
    const int end = begin + std::countr_one(mask >> begin);
    runs.push_back({begin, end});
    at = end;
  }
  return runs;
}

Operand masked(OpEmitter& emit, const Operand& x, const std::vector<Run>& runs) {
  Operand result = integer(emit, 0);
  for (const Run& run : runs) {
    Operand field = low_bits(emit, x, run.end);
    if (run.begin > 0) field = difference(emit, field, low_bits(emit, x, run.begin));
    result = result.is_constant() ? field : sum(emit, result, field);
  }
  return result;
}

// The bits of a digit side by side along the loop of the powers, each 0 or 1, in fp32.
Operand bits_of(OpEmitter& emit, const Operand& digit, const Operand& powers) {
  const Operand above = emit.op(OpId::floor, {emit.op(OpId::realdiv, {digit, powers})});
  const Operand pairs = emit.op(OpId::floor, {emit.op(OpId::mul, {above, number(emit, 0.5)})});
  return emit.op(OpId::sub, {above, emit.op(OpId::mul, {pairs, number(emit, 2)})});
}

// Digit by digit of 16 bits: fp32 holds their quotients by powers, and the sums of powers, exactly; of 32 bits it would
// not. The bits of a digit lie along a loop, so that the steps are as many for 16 bits as for one.
Operand common_bits(OpEmitter& emit, const Operand& x, const Operand& y) {
  const std::string loop = emit.add_loop("bit", kDigitBits);
  const Operand powers = whole_power_of_two(emit, emit.ramp(Expr::symbol(loop), HostType::kFloat32).value());
  const Digits a = digits_of(emit, x), b = digits_of(emit, y);
  const auto common = [&](const Operand& digit_a, const Operand& digit_b) {
    const Operand both = emit.op(OpId::mul, {bits_of(emit, digit_a, powers), bits_of(emit, digit_b, powers)});
    return emit.reduce(OpId::sum, {emit.op(OpId::mul, {both, powers})}, {loop});
  };
  return joined(emit, common(a.high, b.high), common(a.low, b.low), kBase);
}

// Of a y that is -1, 0 or 1, a truth value say: all of x, nothing, or its lowest bit.
Operand masked_by_sign(OpEmitter& emit, const Operand& x, const Operand& y) {
  const Operand lowest = low_bits(emit, x, 1);
  const Operand negative = as_integer(emit, emit.op(OpId::lesserthan, {as_float(emit, y), number(emit, 0)}));
  const Operand chosen = sum(emit, lowest, product(emit, negative, difference(emit, x, lowest)));
  return product(emit, product(emit, y, y), chosen);
}

Operand both(OpEmitter& emit, const Operand& x, const Operand& y) {
  if (x.is_constant() && !y.is_constant()) return both(emit, y, x);
  if (!y.is_constant() && y.most <= 1) return masked_by_sign(emit, x, y);
  if (!y.is_constant() && x.most <= 1) return masked_by_sign(emit, y, x);
  if (!y.is_constant()) return common_bits(emit, x, y);
  // A run takes up to two shifts; of more runs than these the loop over all bits is the shorter way.
  constexpr size_t kFewRuns = 4;
  const auto mask = static_cast<uint32_t>(static_cast<int64_t>(y.value));
  const std::vector<Run> runs = runs_of_ones(mask);
  Operand result = runs.size() <= kFewRuns ? masked(emit, x, runs) : common_bits(emit, x, y);
  if (y.value >= 0) result.most = y.value;
  return result;
}

// Whether a shift moves by at least one bit less than there are; 1 or 0.
Operand is_short(OpEmitter& emit, const Operand& bits) {
  const Operand high = emit.op(OpId::lesserthan, {bits, number(emit, kBits)});
  return emit.op(OpId::mul, {high, emit.op(OpId::greaterequal, {bits, number(emit, 0)})});
}

// 2^bits as two factors up to 2^16, for 0 <= bits < 32.
struct Factors {
  Operand first, second;
};
Factors factors_of(OpEmitter& emit, const Operand& bits) {
  const Operand first = emit.op(OpId::minimum, {bits, number(emit, kDigitBits)});
  return {whole_power_of_two(emit, first), whole_power_of_two(emit, emit.op(OpId::sub, {bits, first}))};
}

Operand shift(OpEmitter& emit, const Operand& x, const Operand& by, bool left) {
  if (by.is_constant()) {
    const bool fits = by.value >= 0 && by.value < kBits;
    if (left)
      return fits ? shifted_left(emit, x, static_cast<int>(by.value)) : product(emit, x, integer(emit, 0));
    return shifted_right(emit, x, fits ? static_cast<int>(by.value) : kBits - 1);
  }
  const Operand bits = as_float(emit, by);
  const Operand is_one = is_short(emit, bits);
  if (left) {
    const Factors factors = factors_of(emit, emit.op(OpId::mul, {bits, is_one}));
    const Operand moved =
        product(emit, product(emit, x, as_integer(emit, factors.first)), as_integer(emit, factors.second));
    return product(emit, moved, as_integer(emit, is_one));
  }
  const Factors factors = factors_of(emit, emit.op(OpId::where3, {is_one, bits, number(emit, kBits - 1)}));
  return shifted_right(emit, shifted_right(emit, x, factors.first), factors.second);
}

}  // namespace

std::optional<Operand> bit_op(OpEmitter& emit, BodyOp op, const std::vector<Operand>& operands) {
  const Operand& x = operands[0];
  if (op == BodyOp::bitwise_not) return difference(emit, integer(emit, -1), x);
  if (op == BodyOp::bitwise_and) return both(emit, x, operands[1]);
  if (op == BodyOp::bitwise_or)
    return difference(emit, sum(emit, x, operands[1]), both(emit, x, operands[1]));
  if (op == BodyOp::bitwise_xor) {
    const Operand twice = product(emit, both(emit, x, operands[1]), integer(emit, 2));
    return difference(emit, sum(emit, x, operands[1]), twice);
  }
  if (op == BodyOp::bitwise_left_shift) return shift(emit, x, operands[1], /*left=*/true);
  if (op == BodyOp::bitwise_right_shift) return shift(emit, x, operands[1], /*left=*/false);
  return std::nullopt;
}

}  // namespace spyre
