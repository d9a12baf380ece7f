#include "spyre/passes/select/op_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <utility>

#include "spyre/ops/ops.h"
#include "spyre/passes/select/integer_recipes.h"
#include "spyre/passes/select/math_recipes.h"
#include "spyre/passes/select/wide_products.h"

namespace spyre {
namespace {

using Operands = std::vector<Operand>;
using Recipe = std::function<Result<Operand>(OpEmitter&, const Operands&)>;

// A recipe for fp32, from math_recipes.h; where the card has the function in 16 bits, that one there.
Recipe in_fp32(Operand (*recipe)(OpEmitter&, const Operand&), std::optional<OpId> in_16_bits = std::nullopt) {
  return [=](OpEmitter& emit, const Operands& x) -> Result<Operand> {
    const bool is_native = in_16_bits && x[0].held == Held::kFp16;
    return is_native ? emit.op(*in_16_bits, {x[0]}) : recipe(emit, x[0]);
  };
}
Recipe of_two_in_fp32(Operand (*recipe)(OpEmitter&, const Operand&, const Operand&)) {
  return [=](OpEmitter& emit, const Operands& x) -> Result<Operand> { return recipe(emit, x[0], x[1]); };
}

Operand logarithm(OpEmitter& emit, const Operand& x) {
  return x.held == Held::kFp16 ? emit.op(OpId::log, {x}) : wide_logarithm(emit, x);
}

// x / 2 * (1 + tanh(z)), z = sqrt(2 / pi) * (x + 0.044715 x^3). (1 + tanh(z)) / 2 is the sigmoid of 2z: one operation,
// and exact where tanh would cancel. It is 0 or 1 long before the cube leaves the range of 16 bits.
Result<Operand> gelu_tanh(OpEmitter& emit, const Operands& operands) {
  const Operand& x = operands[0];
  const Operand bounded = emit.op(OpId::clip, {x}, std::nullopt, {{"clipMin", -16}, {"clipMax", 16}});
  const Operand cube = emit.op(OpId::mul, {emit.op(OpId::mul, {bounded, bounded}), bounded});
  const Operand inner = emit.op(OpId::add, {bounded, emit.op(OpId::mul, {cube, number(emit, 0.044715, x)})});
  const double factor = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return emit.op(OpId::mul,
                 {x, emit.op(OpId::sigmoid, {emit.op(OpId::mul, {inner, number(emit, factor, x)})})});
}

Operand truncated(OpEmitter& emit, const Operand& x) {
  const Operand up = emit.op(OpId::neg, {emit.op(OpId::floor, {emit.op(OpId::neg, {x})})});
  return emit.op(OpId::where3,
                 {emit.op(OpId::greaterequal, {x, number(emit, 0, x)}), emit.op(OpId::floor, {x}), up});
}

// To the nearest integer, ties to even. Nothing is added before it is known to fit.
Result<Operand> rounded(OpEmitter& emit, const Operands& operands) {
  const Operand& x = operands[0];
  const Operand below = emit.op(OpId::floor, {x}), half = number(emit, 0.5, x);
  const Operand above = emit.op(OpId::sub, {x, below});
  const Operand pairs = emit.op(OpId::floor, {emit.op(OpId::mul, {below, half})});
  const Operand is_odd = emit.op(OpId::sub, {below, emit.op(OpId::mul, {pairs, number(emit, 2, x)})});
  const Operand odd_tie = emit.op(OpId::mul, {emit.op(OpId::equal, {above, half}), is_odd});
  const Operand up = emit.op(OpId::maximum, {emit.op(OpId::greaterthan, {above, half}), odd_tie});
  // Zero keeps the sign, and infinity is no number to subtract from itself.
  return emit.op(OpId::where3, {up, emit.op(OpId::add, {below, number(emit, 1, x)}), below});
}

// Squares and products from the highest bit of the exponent down: beside x one value is alive at a time, while from the
// lowest bit up there would be two.
Operand integer_power(OpEmitter& emit, const Operand& x, int64_t exponent) {
  Operand result = x;
  int64_t high = 1;
  while (2 * high <= exponent) high *= 2;
  for (int64_t bit = high / 2; bit > 0; bit /= 2) {
    result = emit.op(OpId::mul, {result, result});
    if ((exponent & bit) != 0) result = emit.op(OpId::mul, {result, x});
  }
  return result;
}

// A power that only the values decide about: of |x|, with the sign of x where the exponent is odd. A negative number with
// a broken exponent has its own logarithm as the result, which is not a number; -inf has the power of its size.
Result<Operand> power_of_both(OpEmitter& emit, const Operand& x, const Operand& y) {
  const Operand zero = number(emit, 0, x), one = number(emit, 1, x), two = number(emit, 2, x);
  const Operand log_size = logarithm(emit, emit.op(OpId::abs, {x})), log = logarithm(emit, x);
  const Operand size = emit.op(OpId::exp, {emit.op(OpId::mul, {y, log_size})});
  // 0 for even exponents, 1 for odd ones, else something between.
  const Operand pairs = emit.op(OpId::floor, {emit.op(OpId::mul, {y, number(emit, 0.5, x)})});
  const Operand odd = emit.op(OpId::sub, {y, emit.op(OpId::mul, {pairs, two})});
  const Operand is_whole = emit.op(OpId::equal, {odd, emit.op(OpId::floor, {odd})});
  const Operand signed_size =
      emit.op(OpId::mul, {size, emit.op(OpId::sub, {one, emit.op(OpId::mul, {odd, two})})});
  const Operand broken =
      emit.op(OpId::where3, {emit.op(OpId::equal, {x, number(emit, -INFINITY, x)}), size, log});
  const Operand of_negative = emit.op(OpId::where3, {is_whole, signed_size, broken});
  const Operand of_zero =
      emit.op(OpId::where3, {emit.op(OpId::greaterthan, {y, zero}), zero, number(emit, INFINITY, x)});
  Operand result = emit.op(OpId::where3, {emit.op(OpId::lesserthan, {x, zero}), of_negative, size});
  result = emit.op(OpId::where3, {emit.op(OpId::equal, {x, zero}), of_zero, result});
  return emit.op(OpId::where3, {emit.op(OpId::equal, {y, zero}), one, result});
}

Result<Operand> power(OpEmitter& emit, const Operands& operands) {
  const Operand &x = operands[0], &y = operands[1];
  if (y.is_constant()) {
    if (y.value == 0.5) return emit.op(OpId::sqrt, {x});
    if (y.value == -0.5) return emit.op(OpId::rsqrt, {x});
    if (y.value == 0) return number(emit, 1, x);
    const double size = std::fabs(y.value);
    if (size == std::floor(size) && size <= 64) {
      const Operand base = y.value > 0 ? x : emit.op(OpId::reciprocal, {x});
      return integer_power(emit, base, static_cast<int64_t>(size));
    }
  }
  // The exponent multiplies the error of the logarithm: in 16 bits little would be left.
  const Operand base = emit.hold(x, Held::kFp32), exponent = emit.hold(y, Held::kFp32);
  const bool may_be_negative = !x.is_constant() || x.value < 0;
  const bool may_be_whole = !y.is_constant() || y.value == std::floor(y.value);
  if (may_be_negative && may_be_whole) return power_of_both(emit, base, exponent);
  // Of a negative number this is not a number, as PyTorch's is for a broken exponent; of -inf it is as of inf.
  const Operand result = emit.op(OpId::exp, {emit.op(OpId::mul, {exponent, logarithm(emit, base)})});
  if (!may_be_negative) return result;
  const Operand end = number(emit, y.value > 0 ? INFINITY : 0, base);
  return emit.op(OpId::where3, {emit.op(OpId::equal, {base, number(emit, -INFINITY, base)}), end, result});
}

// In 16 bits infinity is a large number: what reads back as one in float16, the end of the range in bfloat16.
Result<Operand> is_infinite(OpEmitter& emit, const Operands& operands) {
  const Operand& x = operands[0];
  const bool read_as_fp16 = x.held == Held::kFp16 && x.type == HostType::kFloat16;
  return emit.op(OpId::greaterequal,
                 {emit.op(OpId::abs, {x}), number(emit, read_as_fp16 ? 65536 : INFINITY, x)});
}

Recipe one(OpId op) {
  return [op](OpEmitter& emit, const Operands& operands) -> Result<Operand> { return emit.op(op, operands); };
}

Recipe log_times(double factor) {
  return [=](OpEmitter& emit, const Operands& x) -> Result<Operand> {
    return emit.op(OpId::mul, {logarithm(emit, x[0]), number(emit, factor, x[0])});
  };
}

enum class Computed : uint8_t {
  kAsHeld,  ///< in the operands' own float; integers in fp32
  kFp32,    ///< always in fp32
  kTruth,   ///< operands are compared with zero first
};

struct Entry {
  int inputs;
  Computed computed;
  Recipe recipe;
};

const std::map<BodyOp, Entry>& recipes() {
  using enum Computed;
  static const std::map<BodyOp, Entry> kTable = {
      {BodyOp::abs, {1, kAsHeld, one(OpId::abs)}},
      {BodyOp::add, {2, kAsHeld, one(OpId::add)}},
      {BodyOp::bitwise_and, {2, kTruth, one(OpId::mul)}},
      {BodyOp::bitwise_left_shift, {2, kAsHeld, {}}},  // of integers only, as the next
      {BodyOp::bitwise_right_shift, {2, kAsHeld, {}}},
      {BodyOp::bitwise_not,
       {1, kTruth,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op(OpId::equal, {x[0], number(e, 0, x[0])});
        }}},
      {BodyOp::bitwise_or, {2, kTruth, one(OpId::maximum)}},
      {BodyOp::bitwise_xor, {2, kTruth, one(OpId::notequal)}},
      {BodyOp::ceil,
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op(OpId::neg, {e.op(OpId::floor, {e.op(OpId::neg, {x[0]})})});
        }}},
      {BodyOp::cos, {1, kFp32, in_fp32(cosine)}},
      {BodyOp::eq, {2, kAsHeld, one(OpId::equal)}},
      {BodyOp::erf, {1, kFp32, in_fp32(error_function)}},
      {BodyOp::exp, {1, kAsHeld, one(OpId::exp)}},
      {BodyOp::exp2, {1, kFp32, in_fp32(power_of_two)}},
      {BodyOp::expm1, {1, kFp32, in_fp32(exp_minus_one)}},
      {BodyOp::floor, {1, kAsHeld, one(OpId::floor)}},
      {BodyOp::floordiv, {2, kFp32, of_two_in_fp32(floored_quotient)}},
      {BodyOp::fmod, {2, kFp32, of_two_in_fp32(truncated_remainder)}},
      {BodyOp::ge, {2, kAsHeld, one(OpId::greaterequal)}},
      {BodyOp::gelu, {1, kAsHeld, in_fp32(wide_gelu, OpId::gelufwd)}},
      {BodyOp::gelu_tanh, {1, kAsHeld, gelu_tanh}},
      {BodyOp::gt, {2, kAsHeld, one(OpId::greaterthan)}},
      {BodyOp::isinf, {1, kAsHeld, is_infinite}},
      {BodyOp::isnan,
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op(OpId::notequal, {x[0], x[0]});
        }}},
      {BodyOp::layernormnorm, {5, kAsHeld, one(OpId::layernormnorm)}},
      {BodyOp::le, {2, kAsHeld, one(OpId::lesserequal)}},
      {BodyOp::log, {1, kAsHeld, in_fp32(wide_logarithm, OpId::log)}},
      {BodyOp::log10, {1, kAsHeld, log_times(std::numbers::log10e)}},
      {BodyOp::log1p, {1, kFp32, in_fp32(log_of_one_plus)}},
      {BodyOp::log2, {1, kAsHeld, log_times(std::numbers::log2e)}},
      {BodyOp::logical_and, {2, kTruth, one(OpId::mul)}},
      {BodyOp::logical_not,
       {1, kTruth,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op(OpId::equal, {x[0], number(e, 0, x[0])});
        }}},
      {BodyOp::logical_or, {2, kTruth, one(OpId::maximum)}},
      {BodyOp::logical_xor, {2, kTruth, one(OpId::notequal)}},
      {BodyOp::lt, {2, kAsHeld, one(OpId::lesserthan)}},
      {BodyOp::maximum, {2, kAsHeld, one(OpId::maximum)}},
      {BodyOp::minimum, {2, kAsHeld, one(OpId::minimum)}},
      {BodyOp::mul, {2, kAsHeld, one(OpId::mul)}},
      {BodyOp::ne, {2, kAsHeld, one(OpId::notequal)}},
      {BodyOp::neg, {1, kAsHeld, one(OpId::neg)}},
      {BodyOp::pow, {2, kAsHeld, power}},
      {BodyOp::reciprocal, {1, kAsHeld, one(OpId::reciprocal)}},
      {BodyOp::relu, {1, kAsHeld, one(OpId::relufwd)}},
      {BodyOp::remainder, {2, kFp32, of_two_in_fp32(floored_remainder)}},
      {BodyOp::round, {1, kAsHeld, rounded}},
      {BodyOp::rsqrt, {1, kAsHeld, one(OpId::rsqrt)}},
      {BodyOp::sigmoid, {1, kAsHeld, one(OpId::sigmoid)}},
      {BodyOp::sign,
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          const Operand zero = number(e, 0, x[0]);
          return e.op(OpId::sub,
                      {e.op(OpId::greaterthan, {x[0], zero}), e.op(OpId::lesserthan, {x[0], zero})});
        }}},
      {BodyOp::silu, {1, kAsHeld, one(OpId::silu)}},
      {BodyOp::sin, {1, kFp32, in_fp32(sine)}},
      {BodyOp::sqrt, {1, kAsHeld, one(OpId::sqrt)}},
      {BodyOp::square,
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op(OpId::mul, {x[0], x[0]});
        }}},
      {BodyOp::sub, {2, kAsHeld, one(OpId::sub)}},
      {BodyOp::tanh, {1, kAsHeld, in_fp32(wide_tanh, OpId::tanh)}},
      {BodyOp::truediv, {2, kAsHeld, one(OpId::realdiv)}},
      {BodyOp::trunc,
       {1, kAsHeld, [](OpEmitter& e, const Operands& x) -> Result<Operand> { return truncated(e, x[0]); }}},
      {BodyOp::truncdiv,
       {2, kFp32,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return truncated(e, e.op(OpId::realdiv, {x[0], x[1]}));
        }}},
      {BodyOp::where, {3, kAsHeld, one(OpId::where3)}},
  };
  return kTable;
}

Held widest(const Operands& operands, size_t first) {
  Held held = Held::kFp16;
  for (size_t i = first; i < operands.size(); ++i) {
    const Held h = operands[i].held;
    // Integers beside 16-bit floats are few and small in PyTorch's promotion: the float wins.
    if (h == Held::kFp32) held = Held::kFp32;
  }
  const bool all_integers = std::all_of(operands.begin() + static_cast<std::ptrdiff_t>(first), operands.end(),
                                        [](const Operand& o) { return o.held == Held::kInt32; });
  return all_integers ? Held::kInt32 : held;
}

// The card computes with the types that `Held` names; others it moves.
Status computes(const OpEmitter& emit, const Operands& operands, HostType result) {
  const auto refused = [&](HostType type) {
    return emit.refuse(
        fmt::format("the card computes no {}; it does float16, bfloat16, float32, bool, int32 and int64",
                    to_string(type)));
  };
  for (const Operand& operand : operands) {
    if (operand.held == Held::kBits) return refused(operand.type);
  }
  return held_as(result) == Held::kBits ? Status(refused(result)) : Status();
}

bool is_bitwise(BodyOp op) {
  switch (op) {
    case BodyOp::bitwise_and:
    case BodyOp::bitwise_left_shift:
    case BodyOp::bitwise_not:
    case BodyOp::bitwise_or:
    case BodyOp::bitwise_right_shift:
    case BodyOp::bitwise_xor:
      return true;
    default:
      return false;
  }
}

Operand truth(OpEmitter& emit, const Operand& value) {
  if (value.type == HostType::kBool) return value;
  const Operand number_held = emit.hold(value, value.held == Held::kInt32 ? Held::kFp32 : value.held);
  Operand result = emit.op(OpId::notequal, {number_held, number(emit, 0, number_held)});
  result.type = HostType::kBool;
  return result;
}

Result<Operand> with_attributes(OpEmitter& emit, const Instruction& instruction, const Operands& operands) {
  const auto attribute = [&](std::string_view key, double otherwise) {
    for (const auto& [name, value] : instruction.attributes) {
      if (name == key) return value;
    }
    return otherwise;
  };
  if (instruction.op == BodyOp::clamp) {
    const Operand& x = operands[0];
    const double low = attribute("min", -INFINITY), high = attribute("max", INFINITY);
    if (x.held == Held::kInt32 && !emit.is_exact_float(x)) return integer_clamp(emit, x, low, high);
    Operand number_held = emit.hold(x, x.held == Held::kInt32 ? Held::kFp32 : x.held);
    if (std::isnan(low) || std::isnan(high))
      return emit.op(OpId::add, {number_held, number(emit, NAN, number_held)});
    const bool below = low > -INFINITY, above = high < INFINITY;
    // A clip has two finite bounds, and would take infinities along on the open side.
    if (below && above)
      return emit.op(OpId::clip, {number_held}, std::nullopt, {{"clipMin", low}, {"clipMax", high}});
    if (below) number_held = emit.op(OpId::maximum, {number_held, number(emit, low, number_held)});
    if (above) number_held = emit.op(OpId::minimum, {number_held, number(emit, high, number_held)});
    return number_held;
  }
  if (instruction.op == BodyOp::softplus) {
    const double beta = attribute("beta", 1), threshold = attribute("threshold", 20);
    if (operands[0].held != Held::kFp16) return wide_softplus(emit, operands[0], beta, threshold);
    return emit.op(OpId::softplus, operands, std::nullopt,
                   {{"softplusBeta", beta}, {"softplusThresh", threshold}});
  }
  if (instruction.op == BodyOp::layernormscale) {
    return emit.op(OpId::layernormscale, operands, std::nullopt, {{"eps", attribute("eps", 1e-5)}});
  }
  SPYRE_CHECK(false, fmt::format("'{}' has a recipe", to_string(instruction.op)));
}

}  // namespace

Result<Operand> select_pointwise(OpEmitter& emit, const Instruction& instruction, Operands operands) {
  const bool converts = instruction.op == BodyOp::to_dtype && instruction.dtype != HostType::kBool;
  if (converts) return emit.convert(operands[0], instruction.dtype);
  SPYRE_TRY(computes(emit, operands, instruction.dtype));
  if (instruction.op == BodyOp::to_dtype) return truth(emit, operands[0]);
  const auto entry = recipes().find(instruction.op);
  if (entry == recipes().end()) {
    SPYRE_ASSIGN_OR_RETURN(Operand value, with_attributes(emit, instruction, operands));
    const Held wanted = held_as(instruction.dtype);
    value = emit.hold(value, wanted);
    value.type = instruction.dtype;
    return value;
  }
  const auto& [op, how] = *entry;
  if (operands.size() != static_cast<size_t>(how.inputs)) {
    return emit.refuse(
        fmt::format("'{}' takes {} operands, found {}", to_string(op), how.inputs, operands.size()));
  }
  const bool all_truth = std::all_of(operands.begin(), operands.end(),
                                     [](const Operand& o) { return o.type == HostType::kBool; });
  const bool of_bits = is_bitwise(op) && (!all_truth || !how.recipe);
  if (how.computed == Computed::kTruth && !of_bits) {
    for (Operand& operand : operands) operand = truth(emit, operand);
  }
  const size_t first = op == BodyOp::where ? 1 : 0;
  Held held = widest(operands, first);
  Operand result;
  std::optional<Operand> integer;
  if (held == Held::kInt32) integer = integer_op(emit, op, operands);
  if (of_bits && !integer)
    return emit.refuse(fmt::format("'{}' of what are not integers or truth values", to_string(op)));
  if (integer) {
    result = *integer;
  } else {
    if (held == Held::kInt32 || how.computed == Computed::kFp32) held = Held::kFp32;
    // A truth value beside numbers is held as they are.
    for (Operand& operand : operands) operand = emit.hold(operand, held);
    SPYRE_ASSIGN_OR_RETURN(result, how.recipe(emit, operands));
  }
  if (instruction.dtype != HostType::kBool) result = emit.hold(result, held_as(instruction.dtype));
  result.type = instruction.dtype;
  return result;
}

namespace {

// The first position along a loop where a truth value holds: the position there and something larger elsewhere, of
// these the least. Short loops are counted in 16 bits, which are exact up to 2^10; long ones in fp32, up to 2^24.
Result<Operand> first_position(OpEmitter& emit, const Operand& met, const std::string& loop) {
  constexpr int64_t kExactInFp16 = 1024;
  const Held held = emit.extent(loop) <= kExactInFp16 ? met.held : Held::kFp32;
  const Operand hit = emit.hold(met, held);
  SPYRE_ASSIGN_OR_RETURN(Operand positions, emit.ramp(Expr::symbol(loop), HostType::kFloat32));
  positions = emit.hold(positions, held);
  Operand beyond = emit.constant(held == Held::kFp16 ? 2 * kExactInFp16 : 16777216, HostType::kFloat32);
  beyond.held = held;
  return emit.reduce(OpId::min, {emit.op(OpId::where3, {hit, positions, beyond})}, {loop});
}

// The position of the largest (smallest) value, the first one of equals.
Result<Operand> position_of_extreme(OpEmitter& emit, const Operand& given, OpId extreme) {
  const std::vector<std::string> loops = emit.reduced_loops();
  if (loops.size() > 1)
    return emit.refuse(fmt::format("a position along {} loops; along one is allowed", loops.size()));
  if (loops.empty()) return emit.constant(0, HostType::kInt64);
  if (given.held == Held::kInt32 && !emit.is_exact_float(given))
    return first_position(emit, is_integer_extreme(emit, given, extreme, loops[0]), loops[0]);
  const Operand x = given.held == Held::kInt32 ? emit.hold(given, Held::kFp32) : given;
  const Operand best = emit.reduce(extreme, {x}, loops);
  const Operand equal = emit.op(OpId::equal, {x, best});
  // What is not a number is the extreme wherever it stands, and equals nothing.
  const bool may_be_nan = given.held != Held::kInt32 && given.type != HostType::kBool;
  const Operand met = may_be_nan ? emit.op(OpId::maximum, {equal, emit.op(OpId::notequal, {x, x})}) : equal;
  return first_position(emit, met, loops[0]);
}

// One reduction per loop. Along loops that the value does not depend on, a sum is a multiple and extremes are
// the value itself. A mean is a sum whose last step knows the factor.
Result<Operand> fold_each(OpEmitter& emit, OpId id, Operand value,
                          std::vector<std::pair<std::string, double>> attributes) {
  std::vector<std::string> folded;
  double repeats = 1;
  for (const std::string& loop : emit.reduced_loops()) {
    if (emit.uses(value, loop)) {
      folded.push_back(loop);
    } else {
      repeats *= static_cast<double>(emit.extent(loop));
    }
  }
  if (repeats != 1 && id == OpId::prod)
    return emit.refuse(
        "a product along a loop that its factors do not depend on; sums and extremes are allowed there");
  const bool adds = id == OpId::sum || id == OpId::mean;
  for (auto& [key, factor] : attributes) {
    if (id == OpId::mean && key == "scaling_factor") factor *= std::exchange(repeats, 1);
  }
  for (size_t i = 0; i < folded.size(); ++i) {
    const bool last = i + 1 == folded.size();
    value = id == OpId::mean && !last ? emit.reduce(OpId::sum, {value}, {folded[i]})
                                      : emit.reduce(id, {value}, {folded[i]}, attributes);
  }
  if (folded.empty() && id == OpId::mean) repeats = attributes.empty() ? 1 : attributes[0].second;
  return adds && repeats != 1 ? emit.op(OpId::mul, {value, number(emit, repeats, value)}) : value;
}

// How many parts an fp32 product takes: the attribute `parts`, by default all of them.
Result<Parts> parts_of(const OpEmitter& emit, const Instruction& dot) {
  for (const auto& [name, value] : dot.attributes) {
    if (name != "parts") continue;
    if (value == 1 || value == 2 || value == 3) return static_cast<Parts>(value);
    return emit.refuse(fmt::format("a product of {} parts; 1 to 3 are allowed", value));
  }
  return Parts::kThree;
}

Result<Operand> select_dot(OpEmitter& emit, const Instruction& dot, Operands operands) {
  const std::vector<std::string> loops = emit.reduced_loops();
  SPYRE_ASSIGN_OR_RETURN(const Parts parts, parts_of(emit, dot));
  const Held held = widest(operands, 0);
  const bool wide = held == Held::kFp32, integers = held == Held::kInt32;
  for (Operand& operand : operands) {
    if (wide) operand = emit.hold(operand, Held::kFp32);
  }
  if (loops.size() > 1)
    return emit.refuse(fmt::format("a matmul that sums over {} loops; one is allowed", loops.size()));
  if (loops.empty()) return emit.op(integers ? OpId::muli32toi32 : OpId::mul, operands);
  const bool varies = emit.uses(operands[0], loops[0]) || emit.uses(operands[1], loops[0]);
  const auto is_used = [&](const Operand& operand) { return emit.uses(operand, loops[0]); };
  if (integers && !std::all_of(operands.begin(), operands.end(), is_used))
    return emit.refuse(
        "a matmul of integers that are repeated along the sum; both operands must depend on it");
  if (!varies) return fold_each(emit, OpId::sum, emit.op(OpId::mul, operands), {});
  // The right operand has the stick along n. Without n (a matrix times a vector), multiply and add up.
  const auto own_loop = [&](const Operand& mine, const Operand& other) {
    return std::any_of(emit.node().loops.begin(), emit.node().loops.end(), [&](const Loop& loop) {
      return !loop.reduced && loop.extent != 1 && emit.uses(mine, loop.name) && !emit.uses(other, loop.name);
    });
  };
  if (!own_loop(operands[1], operands[0])) {
    if (!own_loop(operands[0], operands[1])) {
      if (integers) return integer_fold(emit, OpId::sum, emit.op(OpId::muli32toi32, operands));
      return emit.reduce(OpId::sum, {emit.op(OpId::mul, operands)}, loops);
    }
    std::swap(operands[0], operands[1]);
  }
  if (integers) return integer_product(emit, operands[0], operands[1], loops[0]);
  if (wide) return wide_product(emit, operands[0], operands[1], loops[0], parts);
  return emit.reduce(OpId::batchmatmul, operands, loops, {}, held_as(dot.dtype));
}

bool folds_nothing(const OpEmitter& emit) {
  const std::vector<std::string> loops = emit.reduced_loops();
  return std::any_of(loops.begin(), loops.end(),
                     [&](const std::string& loop) { return emit.extent(loop) == 0; });
}

// What a reduction of no elements is, as PyTorch has it. The largest of nothing does not exist.
Result<Operand> fold_of_nothing(const OpEmitter& emit, BodyOp fold, HostType type) {
  switch (fold) {
    case BodyOp::all:
    case BodyOp::prod:
      return emit.constant(1, type);
    case BodyOp::any:
    case BodyOp::dot:
    case BodyOp::sum:
      return emit.constant(0, type);
    case BodyOp::mean:
      return emit.constant(NAN, type);
    default:
      return emit.refuse(fmt::format("the reduction '{}' of no elements",
                                     to_string(fold).substr(std::string_view("reduce.").size())));
  }
}

// The reduction of the card that a fold is made of.
OpId reduction_of(BodyOp fold) {
  switch (fold) {
    case BodyOp::any:
    case BodyOp::max:
      return OpId::max;
    case BodyOp::all:
    case BodyOp::min:
      return OpId::min;
    case BodyOp::exx2:
      return OpId::exx2;
    case BodyOp::mean:
      return OpId::mean;
    case BodyOp::prod:
      return OpId::prod;
    case BodyOp::sum:
      return OpId::sum;
    default:
      SPYRE_CHECK(false, fmt::format("'{}' is one reduction of the card", to_string(fold)));
  }
}

}  // namespace

Result<Operand> select_reduction(OpEmitter& emit, const Instruction& instruction, Operands operands) {
  SPYRE_TRY(computes(emit, operands, instruction.dtype));
  const BodyOp fold = instruction.op;
  const HostType type = instruction.dtype;
  if (folds_nothing(emit)) return fold_of_nothing(emit, fold, type);
  Operand result;
  if (fold == BodyOp::dot) {
    SPYRE_ASSIGN_OR_RETURN(result, select_dot(emit, instruction, std::move(operands)));
  } else if (fold == BodyOp::argmax || fold == BodyOp::argmin) {
    const OpId extreme = fold == BodyOp::argmax ? OpId::max : OpId::min;
    SPYRE_ASSIGN_OR_RETURN(result, position_of_extreme(emit, operands[0], extreme));
    result.type = HostType::kInt64;
    return emit.hold(result, Held::kInt32);
  } else {
    if (fold == BodyOp::any || fold == BodyOp::all) operands[0] = truth(emit, operands[0]);
    const OpId id = reduction_of(fold);
    result = operands[0];
    if (operands[0].held == Held::kInt32) {
      SPYRE_ASSIGN_OR_RETURN(result, integer_fold(emit, id, operands[0]));
    } else if (info_of(id).family == OpFamily::kReduction) {
      SPYRE_ASSIGN_OR_RETURN(result, fold_each(emit, id, result, instruction.attributes));
    } else {
      result = emit.reduce(id, {result}, emit.reduced_loops(), instruction.attributes);
    }
  }
  if (type != HostType::kBool) result = emit.hold(result, held_as(type));
  result.type = type;
  return result;
}

}  // namespace spyre
