#include "spyre/passes/select/integer_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "spyre/passes/select/bit_recipes.h"
#include "spyre/passes/select/integer_steps.h"

namespace spyre {
namespace {

using namespace integer_steps;

// By the sign of the difference: that of the integers themselves where they are so close that floats do not
// tell them apart, else that of the floats, which never overflows. A truth value in fp32.
Operand compared(OpEmitter& emit, OpId comparison, const Operand& x, const Operand& y) {
  const Operand a = as_float(emit, x), b = as_float(emit, y);
  // Beside a number that fp32 holds with its neighbours, the other may be rounded: it stays on its side.
  if (std::min(x.most, y.most) < kExactInFp32) return emit.op(comparison, {a, b});
  Operand apart = as_float(emit, difference(emit, x, y));
  if (comparison != OpId::equal && comparison != OpId::notequal) {
    apart = emit.op(OpId::where3, {emit.op(OpId::equal, {a, b}), apart, emit.op(OpId::sub, {a, b})});
  }
  return emit.op(comparison, {apart, number(emit, 0)});
}

// 1 where it holds, else 0, as an integer.
Operand indicator(OpEmitter& emit, OpId comparison, const Operand& x, const Operand& y) {
  Operand result = as_integer(emit, compared(emit, comparison, x, y));
  result.most = 1;
  return result;
}

Operand chosen(OpEmitter& emit, const Operand& one_or_zero, const Operand& x, const Operand& y) {
  if (y.is_constant() && y.value == 0) return product(emit, one_or_zero, x);
  return sum(emit, y, product(emit, one_or_zero, difference(emit, x, y)));
}

Operand extreme_of_two(OpEmitter& emit, OpId comparison, const Operand& x, const Operand& y) {
  return chosen(emit, indicator(emit, comparison, x, y), x, y);
}

Operand repeated_product(OpEmitter& emit, const Operand& x, int64_t exponent) {
  Operand result = exponent % 2 == 1 ? x : integer(emit, 1), square = x;
  for (exponent /= 2; exponent > 0; exponent /= 2) {
    square = product(emit, square, square);
    if (exponent % 2 == 1) result = result.is_constant() ? square : product(emit, result, square);
  }
  return result;
}

// x = y * quotient + remainder, the remainder between zero and y and never y itself. Two guesses in fp32, each exact to
// 22 bits, then one step up or down.
//
// No operand changes its sign on the way: -2^31 has no other. All differences fit, because floats keep the order of
// integers (a guess is too large only where the remainder is small).
struct Division {
  Operand quotient, remainder;
};
Division divided(OpEmitter& emit, const Operand& x, const Operand& y) {
  const Operand divisor = as_float(emit, y), zero = integer(emit, 0);
  const auto guess = [&](const Operand& rest) {
    const Operand ratio = emit.op(OpId::floor, {emit.op(OpId::realdiv, {as_float(emit, rest), divisor})});
    // What fp32 rounds up to 2^31 is no integer of 32 bits.
    return as_integer(
        emit, emit.op(OpId::clip, {ratio}, std::nullopt, {{"clipMin", -0x1p31}, {"clipMax", 0x1p31 - 128}}));
  };
  Operand quotient = guess(x);
  Operand remainder = difference(emit, x, product(emit, quotient, y));
  const Operand more = guess(remainder);
  quotient = sum(emit, quotient, more);
  remainder = difference(emit, remainder, product(emit, more, y));
  const Operand sign = sum(emit, product(emit, indicator(emit, OpId::lesserthan, y, zero), integer(emit, -2)),
                           integer(emit, 1));
  const auto along_divisor = [&](OpId comparison, const Operand& value) {
    return indicator(emit, comparison, product(emit, value, sign), zero);
  };
  const Operand down = along_divisor(OpId::lesserthan, remainder);
  const Operand up = along_divisor(OpId::greaterequal, difference(emit, remainder, y));
  // Far on the wrong side, the difference wraps: who steps down does not step up.
  const Operand step = difference(emit, chosen(emit, down, zero, up), down);
  return {sum(emit, quotient, step), difference(emit, remainder, product(emit, step, y))};
}

// 1 where rounding towards zero goes up from the floor: the exact quotient is below zero, and broken.
Operand below_zero_and_broken(OpEmitter& emit, const Operand& x, const Operand& y, const Division& d) {
  const Operand signs = emit.op(OpId::mul, {as_float(emit, x), as_float(emit, y)});
  const Operand below = emit.op(OpId::lesserthan, {signs, number(emit, 0)});
  return product(emit, as_integer(emit, below),
                 indicator(emit, OpId::notequal, d.remainder, integer(emit, 0)));
}

std::optional<Operand> quotient_or_remainder(OpEmitter& emit, BodyOp op, const Operand& x, const Operand& y) {
  const bool towards_zero = op == BodyOp::truncdiv || op == BodyOp::fmod;
  if (!towards_zero && op != BodyOp::floordiv && op != BodyOp::remainder) return std::nullopt;
  Division d = divided(emit, x, y);
  if (towards_zero) {
    const Operand up = below_zero_and_broken(emit, x, y, d);
    d.quotient = sum(emit, d.quotient, up);
    d.remainder = difference(emit, d.remainder, product(emit, up, y));
  }
  return op == BodyOp::floordiv || op == BodyOp::truncdiv ? d.quotient : d.remainder;
}

Operand folded(OpEmitter& emit, OpId op, Operand x, const std::vector<std::string>& loops) {
  for (const std::string& loop : loops) x = emit.reduce(op, {x}, {loop});
  return x;
}

// 1 in fp32 where x equals its fold.
Operand matches(OpEmitter& emit, const Operand& x, const Operand& fold) {
  return emit.op(OpId::equal, {x, fold});
}

struct Extreme {
  Digits digits, best;
  Operand candidates;  // low digits beside the best high one, elsewhere something worse
};
Extreme extreme_of(OpEmitter& emit, const Operand& x, OpId extreme, const std::vector<std::string>& loops) {
  const Digits digits = digits_of(emit, x);
  const Operand high = folded(emit, extreme, digits.high, loops);
  const Operand worse = number(emit, extreme == OpId::max ? -1 : kBase);
  const Operand candidates = emit.op(OpId::where3, {matches(emit, digits.high, high), digits.low, worse});
  return {digits, {high, folded(emit, extreme, candidates, loops)}, candidates};
}

// Sums of digits so short that fp32 adds up `count` of them exactly.
Result<Operand> exact_sum(OpEmitter& emit, const Operand& x, int64_t count,
                          const std::vector<std::string>& loops) {
  const auto total = [&](const Operand& part) { return folded(emit, OpId::sum, part, loops); };
  const auto terms = static_cast<double>(count);
  if (terms * x.most <= kExactInFp32) return as_integer(emit, total(as_float(emit, x)));
  if (terms * 256 > kExactInFp32)
    return emit.refuse(fmt::format("a sum of {} integers; fp32 adds up to 65536 exactly", count));
  const Digits digits = digits_of(emit, x);
  if (terms * kBase <= kExactInFp32) return joined(emit, total(digits.high), total(digits.low), kBase);
  const auto in_bytes = [&](const Operand& digit) {
    const Operand high = emit.op(OpId::floor, {emit.op(OpId::mul, {digit, number(emit, 1.0 / 256)})});
    const Operand low = emit.op(OpId::sub, {digit, emit.op(OpId::mul, {high, number(emit, 256)})});
    return joined(emit, total(high), total(low), 256);
  };
  return sum(emit, product(emit, in_bytes(digits.high), integer(emit, kBase)), in_bytes(digits.low));
}

// Factor by factor: the card has no integer product along a dimension.
Result<Operand> exact_product(OpEmitter& emit, Operand x, const std::vector<std::string>& loops) {
  constexpr int64_t kMostFactors = 64;
  for (const std::string& loop : loops) {
    const int64_t count = emit.extent(loop), step = x.access->index.coefficient(loop);
    const Expr first = x.access->index + -step * Expr::symbol(loop);
    if (count > kMostFactors || first.symbols().contains(loop))
      return emit.refuse(
          fmt::format("a product of {} integers; {} in a row are multiplied", count, kMostFactors));
    Operand factor = x;
    std::optional<Operand> so_far;
    for (int64_t k = 0; k < count; ++k) {
      factor.access->index = first + Expr::constant(k * step);
      so_far = so_far ? product(emit, *so_far, factor) : factor;
    }
    x = *so_far;
  }
  return x;
}

}  // namespace

std::optional<Operand> integer_op(OpEmitter& emit, BodyOp op, const std::vector<Operand>& operands) {
  static const std::map<BodyOp, OpId> kComparisons = {
      {BodyOp::eq, OpId::equal},       {BodyOp::ge, OpId::greaterequal}, {BodyOp::gt, OpId::greaterthan},
      {BodyOp::le, OpId::lesserequal}, {BodyOp::lt, OpId::lesserthan},   {BodyOp::ne, OpId::notequal}};
  const Operand& x = operands[0];
  if (op == BodyOp::add) return sum(emit, x, operands[1]);
  if (op == BodyOp::mul) return product(emit, x, operands[1]);
  if (op == BodyOp::neg) return negative(emit, x);
  if (op == BodyOp::sub) return difference(emit, x, operands[1]);
  if (op == BodyOp::square) return product(emit, x, x);
  if (const auto found = kComparisons.find(op); found != kComparisons.end())
    return compared(emit, found->second, x, operands[1]);
  if (std::optional<Operand> bits = bit_op(emit, op, operands)) return bits;
  const bool whole =
      op == BodyOp::pow && operands[1].is_constant() && operands[1].value >= 0 && operands[1].value <= 64;
  if (whole) return repeated_product(emit, x, static_cast<int64_t>(operands[1].value));
  const size_t first = op == BodyOp::where ? 1 : 0;
  const bool small = std::all_of(operands.begin() + static_cast<std::ptrdiff_t>(first), operands.end(),
                                 [&](const Operand& o) { return emit.is_exact_float(o); });
  if (small) return std::nullopt;
  if (op == BodyOp::where) return chosen(emit, emit.hold(x, Held::kInt32), operands[1], operands[2]);
  if (op == BodyOp::maximum) return extreme_of_two(emit, OpId::greaterthan, x, operands[1]);
  if (op == BodyOp::minimum) return extreme_of_two(emit, OpId::lesserthan, x, operands[1]);
  if (op == BodyOp::relu) return product(emit, x, indicator(emit, OpId::greaterthan, x, integer(emit, 0)));
  if (op == BodyOp::abs)
    return chosen(emit, indicator(emit, OpId::lesserthan, x, integer(emit, 0)), negative(emit, x), x);
  return operands.size() == 2 ? quotient_or_remainder(emit, op, x, operands[1]) : std::nullopt;
}

Operand integer_clamp(OpEmitter& emit, const Operand& x, double low, double high) {
  Operand result = x;
  if (low > -0x1p31) result = extreme_of_two(emit, OpId::greaterthan, result, integer(emit, std::ceil(low)));
  if (high < 0x1p31 - 1)
    result = extreme_of_two(emit, OpId::lesserthan, result, integer(emit, std::floor(high)));
  return result;
}

Result<Operand> integer_fold(OpEmitter& emit, OpId kind, const Operand& x) {
  std::vector<std::string> loops;
  int64_t count = 1, repeats = 1;
  for (const std::string& loop : emit.reduced_loops()) {
    const bool varies = emit.uses(x, loop);
    if (varies) loops.push_back(loop);
    (varies ? count : repeats) *= emit.extent(loop);
  }
  if (kind == OpId::sum) {
    SPYRE_ASSIGN_OR_RETURN(const Operand total, exact_sum(emit, x, count, loops));
    return repeats == 1 ? total : product(emit, total, integer(emit, static_cast<double>(repeats)));
  }
  if (kind == OpId::prod) {
    if (repeats != 1)
      return emit.refuse(
          "a product along a loop that its factors do not depend on; sums and extremes are allowed there");
    return exact_product(emit, x, loops);
  }
  if (emit.is_exact_float(x)) return as_integer(emit, folded(emit, kind, as_float(emit, x), loops));
  const Extreme extreme = extreme_of(emit, x, kind, loops);
  return joined(emit, extreme.best.high, extreme.best.low, kBase);
}

Operand is_integer_extreme(OpEmitter& emit, const Operand& x, OpId extreme, const std::string& loop) {
  const Extreme found = extreme_of(emit, x, extreme, {loop});
  return matches(emit, found.candidates, found.best.low);
}

}  // namespace spyre
