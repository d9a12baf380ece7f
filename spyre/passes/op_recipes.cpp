#include "spyre/passes/op_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <utility>

#include "spyre/ops/ops.h"
#include "spyre/passes/integer_recipes.h"

namespace spyre {
namespace {

using Operands = std::vector<Operand>;
using Recipe = std::function<Result<Operand>(OpEmitter&, const Operands&)>;

Operand number(OpEmitter& emit, double value, const Operand& like) {
  Operand constant = emit.constant(value, HostType::kFloat32);
  constant.held = like.held;
  return constant;
}

// A sum of powers of x, by Horner's rule: coefficients from the highest power down.
Operand polynomial(OpEmitter& emit, const Operand& x, const std::vector<double>& coefficients) {
  Operand sum = number(emit, coefficients[0], x);
  for (size_t i = 1; i < coefficients.size(); ++i) {
    const Operand product = emit.op("mul", {x, sum});
    sum = coefficients[i] == 0 ? product : emit.op("add", {product, number(emit, coefficients[i], x)});
  }
  return sum;
}

// sin and cos of half the angle, after taking out whole turns; then the double-angle formulas. In fp32.
struct HalfAngle {
  Operand sine, cosine;
};
HalfAngle half_angle(OpEmitter& emit, const Operand& x) {
  constexpr double kTurn = 2 * std::numbers::pi;
  // The turn in two parts: the first has few bits, so that turns * first is exact.
  constexpr double kCoarse = 6.28125;
  const Operand turns = emit.op(
      "floor", {emit.op("add", {emit.op("mul", {x, number(emit, 1 / kTurn, x)}), number(emit, 0.5, x)})});
  const Operand coarse = emit.op("sub", {x, emit.op("mul", {turns, number(emit, kCoarse, x)})});
  const Operand angle = emit.op("sub", {coarse, emit.op("mul", {turns, number(emit, kTurn - kCoarse, x)})});
  const Operand half = emit.op("mul", {angle, number(emit, 0.5, x)});
  const Operand square = emit.op("mul", {half, half});
  const Operand sine = emit.op(
      "mul", {half, polynomial(emit, square,
                               {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0})});
  const Operand cosine = polynomial(
      emit, square, {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0});
  return {sine, cosine};
}

Result<Operand> sine(OpEmitter& emit, const Operands& x) {
  const HalfAngle half = half_angle(emit, x[0]);
  return emit.op("mul", {emit.op("mul", {half.sine, half.cosine}), number(emit, 2, x[0])});
}

Result<Operand> cosine(OpEmitter& emit, const Operands& x) {
  const HalfAngle half = half_angle(emit, x[0]);
  const Operand twice = emit.op("mul", {emit.op("mul", {half.sine, half.sine}), number(emit, 2, x[0])});
  return emit.op("sub", {number(emit, 1, x[0]), twice});
}

// Abramowitz and Stegun 7.1.26, below 1.5e-7 everywhere. In fp32.
Result<Operand> error_function(OpEmitter& emit, const Operands& operands) {
  const Operand& x = operands[0];
  const Operand size = emit.op("abs", {x});
  const Operand t =
      emit.op("reciprocal",
              {emit.op("add", {emit.op("mul", {size, number(emit, 0.3275911, x)}), number(emit, 1, x)})});
  const Operand sum =
      polynomial(emit, t, {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0});
  const Operand tail = emit.op("mul", {sum, emit.op("exp", {emit.op("neg", {emit.op("mul", {x, x})})})});
  const Operand zero = number(emit, 0, x);
  const Operand sign = emit.op("sub", {emit.op("greaterthan", {x, zero}), emit.op("lesserthan", {x, zero})});
  return emit.op("mul", {sign, emit.op("sub", {number(emit, 1, x), tail})});
}

// The card's logarithm is 16-bit; two steps of Halley's method on exp make it fp32. The root is taken first, three times
// for the first guess, so that neither the 16-bit format nor exp ends before fp32 does: log x = 2 log r, r = sqrt x.
Result<Operand> logarithm(OpEmitter& emit, const Operands& operands) {
  const Operand& x = operands[0];
  if (x.held == Held::kFp16) return emit.op("log", {x});
  const Operand root = emit.op("sqrt", {x});
  const Operand eighth = emit.op("sqrt", {emit.op("sqrt", {root})});
  const Operand guess = emit.hold(emit.op("log", {emit.hold(eighth, Held::kFp16)}), Held::kFp32);
  Operand y = emit.op("mul", {guess, number(emit, 4, x)});
  for (int step = 0; step < 2; ++step) {
    const Operand e = emit.op("exp", {y});
    const Operand step_size = emit.op("realdiv", {emit.op("sub", {root, e}), emit.op("add", {root, e})});
    y = emit.op("add", {y, emit.op("mul", {step_size, number(emit, 2, x)})});
  }
  y = emit.op("mul", {y, number(emit, 2, x)});
  // In 16 bits the infinite ends are not numbers.
  const Operand infinite = number(emit, INFINITY, x);
  y = emit.op("where3", {emit.op("equal", {x, infinite}), infinite, y});
  return emit.op("where3", {emit.op("equal", {x, number(emit, 0, x)}), number(emit, -INFINITY, x), y});
}

Result<Operand> hyperbolic_tangent(OpEmitter& emit, const Operands& x) {
  if (x[0].held == Held::kFp16) return emit.op("tanh", {x[0]});
  const Operand twice = emit.op("mul", {x[0], number(emit, 2, x[0])});
  return emit.op(
      "sub", {emit.op("mul", {emit.op("sigmoid", {twice}), number(emit, 2, x[0])}), number(emit, 1, x[0])});
}

// The card's own is 16-bit; in fp32 it is x / 2 * (1 + erf(x / sqrt 2)).
Result<Operand> gelu(OpEmitter& emit, const Operands& operands) {
  const Operand& x = operands[0];
  if (x.held == Held::kFp16) return emit.op("gelufwd", {x});
  SPYRE_ASSIGN_OR_RETURN(const Operand erf,
                         error_function(emit, {emit.op("mul", {x, number(emit, 1 / std::numbers::sqrt2, x)})}));
  const Operand half = emit.op("mul", {x, number(emit, 0.5, x)});
  return emit.op("mul", {half, emit.op("add", {erf, number(emit, 1, x)})});
}

// x / 2 * (1 + tanh(z)), z = sqrt(2 / pi) * (x + 0.044715 x^3). (1 + tanh(z)) / 2 is the sigmoid of 2z: one operation,
// and exact where tanh would cancel.
Result<Operand> gelu_tanh(OpEmitter& emit, const Operands& operands) {
  const Operand& x = operands[0];
  const Operand cube = emit.op("mul", {emit.op("mul", {x, x}), x});
  const Operand inner = emit.op("add", {x, emit.op("mul", {cube, number(emit, 0.044715, x)})});
  const double factor = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return emit.op("mul", {x, emit.op("sigmoid", {emit.op("mul", {inner, number(emit, factor, x)})})});
}

Operand floor_of_quotient(OpEmitter& emit, const Operand& x, const Operand& y) {
  return emit.op("floor", {emit.op("realdiv", {x, y})});
}

Operand truncated(OpEmitter& emit, const Operand& x) {
  const Operand up = emit.op("neg", {emit.op("floor", {emit.op("neg", {x})})});
  return emit.op("where3", {emit.op("greaterequal", {x, number(emit, 0, x)}), emit.op("floor", {x}), up});
}

// To the nearest integer, halves to the even one.
Result<Operand> rounded(OpEmitter& emit, const Operands& operands) {
  const Operand& x = operands[0];
  const Operand up = emit.op("floor", {emit.op("add", {x, number(emit, 0.5, x)})});
  const Operand tie = emit.op("equal", {emit.op("sub", {up, x}), number(emit, 0.5, x)});
  const Operand half = emit.op("mul", {up, number(emit, 0.5, x)});
  const Operand odd = emit.op("mul", {emit.op("sub", {half, emit.op("floor", {half})}), number(emit, 2, x)});
  return emit.op("sub", {up, emit.op("mul", {tie, odd})});
}

Operand integer_power(OpEmitter& emit, const Operand& x, int64_t exponent) {
  Operand result = x;
  int64_t high = 1;
  while (2 * high <= exponent) high *= 2;
  for (int64_t bit = high / 2; bit > 0; bit /= 2) {
    result = emit.op("mul", {result, result});
    if ((exponent & bit) != 0) result = emit.op("mul", {result, x});
  }
  return result;
}

// A power that only the values decide about: of |x|, with the sign of x where the exponent is odd. A negative base with
// a broken exponent has its own logarithm as the result, which is not a number.
Result<Operand> power_of_both(OpEmitter& emit, const Operand& x, const Operand& y) {
  const Operand zero = number(emit, 0, x), one = number(emit, 1, x), two = number(emit, 2, x);
  SPYRE_ASSIGN_OR_RETURN(const Operand log_size, logarithm(emit, {emit.op("abs", {x})}));
  SPYRE_ASSIGN_OR_RETURN(const Operand log, logarithm(emit, {x}));
  const Operand size = emit.op("exp", {emit.op("mul", {y, log_size})});
  // 0 for even exponents, 1 for odd ones, else something between.
  const Operand pairs = emit.op("floor", {emit.op("mul", {y, number(emit, 0.5, x)})});
  const Operand odd = emit.op("sub", {y, emit.op("mul", {pairs, two})});
  const Operand is_whole = emit.op("equal", {odd, emit.op("floor", {odd})});
  const Operand signed_size = emit.op("mul", {size, emit.op("sub", {one, emit.op("mul", {odd, two})})});
  const Operand of_negative = emit.op("where3", {is_whole, signed_size, log});
  const Operand of_zero = emit.op("where3", {emit.op("greaterthan", {y, zero}), zero, number(emit, INFINITY, x)});
  Operand result = emit.op("where3", {emit.op("lesserthan", {x, zero}), of_negative, size});
  result = emit.op("where3", {emit.op("equal", {x, zero}), of_zero, result});
  return emit.op("where3", {emit.op("equal", {y, zero}), one, result});
}

Result<Operand> power(OpEmitter& emit, const Operands& operands) {
  const Operand &x = operands[0], &y = operands[1];
  if (y.is_constant()) {
    if (y.value == 0.5) return emit.op("sqrt", {x});
    if (y.value == -0.5) return emit.op("rsqrt", {x});
    if (y.value == 0) return number(emit, 1, x);
    const double size = std::fabs(y.value);
    if (size == std::floor(size) && size <= 64) {
      const Operand base = y.value > 0 ? x : emit.op("reciprocal", {x});
      return integer_power(emit, base, static_cast<int64_t>(size));
    }
  }
  // The exponent multiplies the error of the logarithm: in 16 bits little would be left.
  const Operand base = emit.hold(x, Held::kFp32), exponent = emit.hold(y, Held::kFp32);
  if (!x.is_constant() && !y.is_constant()) return power_of_both(emit, base, exponent);
  // Of a negative base this is not a number, as PyTorch's is for a broken exponent.
  SPYRE_ASSIGN_OR_RETURN(const Operand log, logarithm(emit, {base}));
  return emit.op("exp", {emit.op("mul", {exponent, log})});
}

// Infinities and NaNs of the host are large numbers to the card in 16 bits, and its own code stands for both.
Status tells_special_values(const OpEmitter& emit, const Operand& x) {
  if (x.held != Held::kFp16 || x.type == HostType::kBool) return Status();
  return emit.refuse("infinities and NaNs cannot be told from numbers in 16 bits");
}

Recipe one(std::string_view op) {
  return [op](OpEmitter& emit, const Operands& operands) -> Result<Operand> { return emit.op(op, operands); };
}

Recipe scaled(std::string_view op, double before, double after) {
  return [=](OpEmitter& emit, const Operands& x) -> Result<Operand> {
    const Operand in = before == 1 ? x[0] : emit.op("mul", {x[0], number(emit, before, x[0])});
    Operand out;
    if (op == "log") {
      SPYRE_ASSIGN_OR_RETURN(out, logarithm(emit, {in}));
    } else {
      out = emit.op(op, {in});
    }
    return after == 1 ? out : emit.op("mul", {out, number(emit, after, x[0])});
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

const std::map<std::string, Entry, std::less<>>& recipes() {
  using enum Computed;
  static const std::map<std::string, Entry, std::less<>> kTable = {
      {"abs", {1, kAsHeld, one("abs")}},
      {"add", {2, kAsHeld, one("add")}},
      {"bitwise_and", {2, kTruth, one("mul")}},
      {"bitwise_not",
       {1, kTruth,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op("equal", {x[0], number(e, 0, x[0])});
        }}},
      {"bitwise_or", {2, kTruth, one("maximum")}},
      {"bitwise_xor", {2, kTruth, one("notequal")}},
      {"ceil",
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op("neg", {e.op("floor", {e.op("neg", {x[0]})})});
        }}},
      {"cos", {1, kFp32, cosine}},
      {"eq", {2, kAsHeld, one("equal")}},
      {"erf", {1, kFp32, error_function}},
      {"exp", {1, kAsHeld, one("exp")}},
      {"exp2", {1, kAsHeld, scaled("exp", std::numbers::ln2, 1)}},
      {"expm1",
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op("sub", {e.op("exp", {x[0]}), number(e, 1, x[0])});
        }}},
      {"floor", {1, kAsHeld, one("floor")}},
      {"floordiv",
       {2, kFp32,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> { return floor_of_quotient(e, x[0], x[1]); }}},
      {"fmod",
       {2, kFp32,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op("sub", {x[0], e.op("mul", {x[1], truncated(e, e.op("realdiv", {x[0], x[1]}))})});
        }}},
      {"ge", {2, kAsHeld, one("greaterequal")}},
      {"gelu", {1, kAsHeld, gelu}},
      {"gelu_tanh", {1, kAsHeld, gelu_tanh}},
      {"gt", {2, kAsHeld, one("greaterthan")}},
      {"isinf",
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          SPYRE_TRY(tells_special_values(e, x[0]));
          return e.op("equal", {e.op("abs", {x[0]}), number(e, INFINITY, x[0])});
        }}},
      {"isnan",
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          SPYRE_TRY(tells_special_values(e, x[0]));
          return e.op("notequal", {x[0], x[0]});
        }}},
      {"layernormnorm", {5, kAsHeld, one("layernormnorm")}},
      {"le", {2, kAsHeld, one("lesserequal")}},
      {"log", {1, kAsHeld, logarithm}},
      {"log10", {1, kAsHeld, scaled("log", 1, std::numbers::log10e)}},
      {"log1p",
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return logarithm(e, {e.op("add", {x[0], number(e, 1, x[0])})});
        }}},
      {"log2", {1, kAsHeld, scaled("log", 1, std::numbers::log2e)}},
      {"logical_and", {2, kTruth, one("mul")}},
      {"logical_not",
       {1, kTruth,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op("equal", {x[0], number(e, 0, x[0])});
        }}},
      {"logical_or", {2, kTruth, one("maximum")}},
      {"logical_xor", {2, kTruth, one("notequal")}},
      {"lt", {2, kAsHeld, one("lesserthan")}},
      {"maximum", {2, kAsHeld, one("maximum")}},
      {"minimum", {2, kAsHeld, one("minimum")}},
      {"mul", {2, kAsHeld, one("mul")}},
      {"ne", {2, kAsHeld, one("notequal")}},
      {"neg", {1, kAsHeld, one("neg")}},
      {"pow", {2, kAsHeld, power}},
      {"reciprocal", {1, kAsHeld, one("reciprocal")}},
      {"relu", {1, kAsHeld, one("relufwd")}},
      {"remainder",
       {2, kFp32,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op("sub", {x[0], e.op("mul", {x[1], floor_of_quotient(e, x[0], x[1])})});
        }}},
      {"round", {1, kAsHeld, rounded}},
      {"rsqrt", {1, kAsHeld, one("rsqrt")}},
      {"sigmoid", {1, kAsHeld, one("sigmoid")}},
      {"sign",
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          const Operand zero = number(e, 0, x[0]);
          return e.op("sub", {e.op("greaterthan", {x[0], zero}), e.op("lesserthan", {x[0], zero})});
        }}},
      {"silu", {1, kAsHeld, one("silu")}},
      {"sin", {1, kFp32, sine}},
      {"sqrt", {1, kAsHeld, one("sqrt")}},
      {"square",
       {1, kAsHeld,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return e.op("mul", {x[0], x[0]});
        }}},
      {"sub", {2, kAsHeld, one("sub")}},
      {"tanh", {1, kAsHeld, hyperbolic_tangent}},
      {"truediv", {2, kAsHeld, one("realdiv")}},
      {"trunc",
       {1, kAsHeld, [](OpEmitter& e, const Operands& x) -> Result<Operand> { return truncated(e, x[0]); }}},
      {"truncdiv",
       {2, kFp32,
        [](OpEmitter& e, const Operands& x) -> Result<Operand> {
          return truncated(e, e.op("realdiv", {x[0], x[1]}));
        }}},
      {"where", {3, kAsHeld, one("where3")}},
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

Operand truth(OpEmitter& emit, const Operand& value) {
  if (value.type == HostType::kBool) return value;
  const Operand number_held = emit.hold(value, value.held == Held::kInt32 ? Held::kFp32 : value.held);
  Operand result = emit.op("notequal", {number_held, number(emit, 0, number_held)});
  result.type = HostType::kBool;
  return result;
}

// The card's own is 16-bit; in fp32 it is log(1 + exp(bx)) / b, and x itself beyond the threshold.
Result<Operand> wide_softplus(OpEmitter& emit, const Operand& x, double beta, double threshold) {
  const Operand scaled = emit.op("mul", {x, number(emit, beta, x)});
  const Operand bounded = emit.op("minimum", {scaled, number(emit, threshold, x)});
  SPYRE_ASSIGN_OR_RETURN(const Operand log,
                         logarithm(emit, {emit.op("add", {emit.op("exp", {bounded}), number(emit, 1, x)})}));
  const Operand beyond = emit.op("greaterthan", {scaled, number(emit, threshold, x)});
  return emit.op("where3", {beyond, x, emit.op("mul", {log, number(emit, 1 / beta, x)})});
}

Result<Operand> with_attributes(OpEmitter& emit, const Instruction& instruction, const Operands& operands) {
  const auto attribute = [&](std::string_view key, double otherwise) {
    for (const auto& [name, value] : instruction.attributes) {
      if (name == key) return value;
    }
    return otherwise;
  };
  if (instruction.op == "clamp") {
    const Operand& x = operands[0];
    // A bound that is not there: near the largest finite value of the format.
    const double huge = x.held == Held::kFp16 ? 2.0e9 : 3.0e38;
    const double low = std::max(attribute("min", -huge), -huge),
                 high = std::min(attribute("max", huge), huge);
    if (x.held == Held::kInt32 && !emit.is_exact_float(x)) return integer_clamp(emit, x, low, high);
    const Operand number_held = emit.hold(x, x.held == Held::kInt32 ? Held::kFp32 : x.held);
    return emit.op("clip", {number_held}, std::nullopt, {{"clipMin", low}, {"clipMax", high}});
  }
  if (instruction.op == "softplus") {
    const double beta = attribute("beta", 1), threshold = attribute("threshold", 20);
    if (operands[0].held != Held::kFp16) return wide_softplus(emit, operands[0], beta, threshold);
    return emit.op("softplus", operands, std::nullopt, {{"softplusBeta", beta}, {"softplusThresh", threshold}});
  }
  if (instruction.op == "layernormscale") {
    return emit.op("layernormscale", operands, std::nullopt, {{"eps", attribute("eps", 1e-5)}});
  }
  return emit.refuse(fmt::format("'{}' has no form on the card", instruction.op));
}

}  // namespace

Result<Operand> select_pointwise(OpEmitter& emit, const Instruction& instruction, Operands operands) {
  if (instruction.op == "to_dtype") {
    Operand value = instruction.dtype == HostType::kBool ? truth(emit, operands[0])
                                                         : emit.hold(operands[0], held_as(instruction.dtype));
    value.type = instruction.dtype;
    return value;
  }
  const auto entry = recipes().find(instruction.op);
  if (entry == recipes().end()) {
    SPYRE_ASSIGN_OR_RETURN(Operand value, with_attributes(emit, instruction, operands));
    const Held wanted = held_as(instruction.dtype);
    value = emit.hold(value, wanted);
    value.type = instruction.dtype;
    return value;
  }
  const auto& [name, how] = *entry;
  if (operands.size() != static_cast<size_t>(how.inputs)) {
    return emit.refuse(fmt::format("'{}' takes {} operands, found {}", name, how.inputs, operands.size()));
  }
  const bool with_itself = operands.size() == 2 && operands[0].access && operands[0].access == operands[1].access;
  if (with_itself && (name == "ne" || name == "eq")) SPYRE_TRY(tells_special_values(emit, operands[0]));
  const bool all_truth = std::all_of(operands.begin(), operands.end(),
                                     [](const Operand& o) { return o.type == HostType::kBool; });
  if (name.starts_with("bitwise_") && !all_truth) return emit.refuse(fmt::format("'{}' of integers", name));
  if (how.computed == Computed::kTruth) {
    for (Operand& operand : operands) operand = truth(emit, operand);
  }
  const size_t first = name == "where" ? 1 : 0;
  Held held = widest(operands, first);
  Operand result;
  std::optional<Operand> integer;
  if (held == Held::kInt32) integer = integer_op(emit, name, operands);
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
  constexpr int64_t kExact = 1024;
  const Held held = emit.extent(loop) <= kExact ? met.held : Held::kFp32;
  const Operand hit = emit.hold(met, held);
  SPYRE_ASSIGN_OR_RETURN(Operand positions, emit.ramp(Expr::symbol(loop), HostType::kFloat32));
  positions = emit.hold(positions, held);
  Operand beyond = emit.constant(held == Held::kFp16 ? 2 * kExact : 16777216, HostType::kFloat32);
  beyond.held = held;
  return emit.reduce("min", {emit.op("where3", {hit, positions, beyond})}, {loop});
}

// The position of the largest (smallest) value, the first one of equals.
Result<Operand> position_of_extreme(OpEmitter& emit, const Operand& given, std::string_view extreme) {
  const std::vector<std::string> loops = emit.reduced_loops();
  if (loops.size() > 1) return emit.refuse("arg reductions over several loops");
  if (loops.empty()) return emit.constant(0, HostType::kInt64);
  if (given.held == Held::kInt32 && !emit.is_exact_float(given))
    return first_position(emit, is_integer_extreme(emit, given, extreme, loops[0]), loops[0]);
  const Operand value = given.held == Held::kInt32 ? emit.hold(given, Held::kFp32) : given;
  // In 16 bits padding counts as -65504 (a minimum: 65504). What lies beyond becomes as much, or nothing would be met.
  constexpr double kPadding = 65504, kLargest = 8573157376;
  const bool maximum = extreme == "max";
  const Operand x = value.held == Held::kFp16
                        ? emit.op("clip", {value}, std::nullopt,
                                  {{"clipMin", maximum ? -kPadding : -kLargest}, {"clipMax", maximum ? kLargest : kPadding}})
                        : value;
  const Operand best = emit.reduce(extreme, {x}, loops);
  Operand met = emit.op("equal", {x, best});
  // What is not a number is the extreme wherever it stands, and equals nothing.
  if (x.held == Held::kFp32) met = emit.op("maximum", {met, emit.op("notequal", {x, x})});
  return first_position(emit, met, loops[0]);
}

// One reduction per loop. Along loops that the value does not depend on, a sum is a multiple and extremes are
// the value itself. A mean is a sum whose last step knows the factor.
Result<Operand> fold_each(OpEmitter& emit, const std::string& name, Operand value,
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
  if (repeats != 1 && name == "prod") return emit.refuse("a product of equal factors");
  const bool adds = name == "sum" || name == "mean";
  for (auto& [key, factor] : attributes) {
    if (name == "mean" && key == "scaling_factor") factor *= std::exchange(repeats, 1);
  }
  for (size_t i = 0; i < folded.size(); ++i) {
    const bool last = i + 1 == folded.size();
    value = name == "mean" && !last ? emit.reduce("sum", {value}, {folded[i]})
                                    : emit.reduce(name, {value}, {folded[i]}, attributes);
  }
  if (folded.empty() && name == "mean") repeats = attributes.empty() ? 1 : attributes[0].second;
  return adds && repeats != 1 ? emit.op("mul", {value, number(emit, repeats, value)}) : value;
}

Result<Operand> select_dot(OpEmitter& emit, Operands operands) {
  const std::vector<std::string> loops = emit.reduced_loops();
  for (const Operand& operand : operands) {
    if (operand.held != Held::kFp16) {
      return emit.refuse("a matmul of 32-bit values; the card multiplies matrices in 16 bits");
    }
  }
  if (loops.size() > 1) return emit.refuse("a matmul that sums over several loops");
  if (loops.empty()) return emit.op("mul", operands);
  const bool varies = emit.uses(operands[0], loops[0]) || emit.uses(operands[1], loops[0]);
  if (!varies) return fold_each(emit, "sum", emit.op("mul", operands), {});
  // The right operand has the stick along n. Without n (a matrix times a vector), multiply and add up.
  const auto own_loop = [&](const Operand& mine, const Operand& other) {
    return std::any_of(emit.node().loops.begin(), emit.node().loops.end(), [&](const Loop& loop) {
      return !loop.reduced && loop.extent != 1 && emit.uses(mine, loop.name) && !emit.uses(other, loop.name);
    });
  };
  if (own_loop(operands[1], operands[0])) return emit.reduce("batchmatmul", operands, loops);
  if (own_loop(operands[0], operands[1]))
    return emit.reduce("batchmatmul", {operands[1], operands[0]}, loops);
  return emit.reduce("sum", {emit.op("mul", operands)}, loops);
}

bool folds_nothing(const OpEmitter& emit) {
  const std::vector<std::string> loops = emit.reduced_loops();
  return std::any_of(loops.begin(), loops.end(), [&](const std::string& loop) { return emit.extent(loop) == 0; });
}

// What a reduction of no elements is, as PyTorch has it. The largest of nothing does not exist.
Result<Operand> fold_of_nothing(const OpEmitter& emit, std::string_view kind, HostType type) {
  static const std::map<std::string, double, std::less<>> kOfNothing = {
      {"all", 1}, {"any", 0}, {"dot", 0}, {"mean", NAN}, {"prod", 1}, {"sum", 0}};
  const auto value = kOfNothing.find(kind);
  if (value == kOfNothing.end()) return emit.refuse(fmt::format("the reduction '{}' of no elements", kind));
  return emit.constant(value->second, type);
}

}  // namespace

Result<Operand> select_reduction(OpEmitter& emit, const Instruction& instruction, Operands operands) {
  const std::string kind = instruction.op.substr(instruction.op.find('.') + 1);
  const HostType type = instruction.dtype;
  if (folds_nothing(emit)) return fold_of_nothing(emit, kind, type);
  Operand result;
  if (kind == "dot") {
    SPYRE_ASSIGN_OR_RETURN(result, select_dot(emit, std::move(operands)));
  } else if (kind == "argmax" || kind == "argmin") {
    SPYRE_ASSIGN_OR_RETURN(result,
                           position_of_extreme(emit, operands[0], kind == "argmax" ? "max" : "min"));
    result.type = HostType::kInt64;
    return emit.hold(result, Held::kInt32);
  } else {
    std::string name = kind;
    if (kind == "any" || kind == "all") {
      operands[0] = truth(emit, operands[0]);
      name = kind == "any" ? "max" : "min";
    }
    const OpInfo* info = find_op(name);
    if (info == nullptr || (info->family != OpFamily::kReduction && info->family != OpFamily::kLayerNorm)) {
      return emit.refuse(fmt::format("the reduction '{}' has no form on the card", kind));
    }
    result = operands[0];
    std::vector<std::string> loops = emit.reduced_loops();
    if (operands[0].held == Held::kInt32) {
      SPYRE_ASSIGN_OR_RETURN(result, integer_fold(emit, name, operands[0]));
    } else if (info->family == OpFamily::kReduction) {
      SPYRE_ASSIGN_OR_RETURN(result, fold_each(emit, name, result, instruction.attributes));
    } else {
      result = emit.reduce(name, {result}, loops, instruction.attributes);
    }
  }
  if (type != HostType::kBool) result = emit.hold(result, held_as(type));
  result.type = type;
  return result;
}

}  // namespace spyre
