#include "spyre/passes/select/math_recipes.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace spyre {
namespace {

Operand add(OpEmitter& emit, const Operand& x, const Operand& y) {
  return emit.op(OpId::add, {x, y});
}
Operand subtract(OpEmitter& emit, const Operand& x, const Operand& y) {
  return emit.op(OpId::sub, {x, y});
}
Operand multiply(OpEmitter& emit, const Operand& x, const Operand& y) {
  return emit.op(OpId::mul, {x, y});
}
Operand multiply(OpEmitter& emit, const Operand& x, double factor) {
  return multiply(emit, x, number(emit, factor, x));
}
Operand choose(OpEmitter& emit, const Operand& condition, const Operand& x, const Operand& y) {
  return emit.op(OpId::where3, {condition, x, y});
}
Operand clipped(OpEmitter& emit, const Operand& x, double low, double high) {
  return emit.op(OpId::clip, {x}, std::nullopt, {{"clipMin", low}, {"clipMax", high}});
}
Operand nearest(OpEmitter& emit, const Operand& x) {
  return emit.op(OpId::floor, {add(emit, x, number(emit, 0.5, x))});
}

// A sum of powers of x, by Horner's rule: coefficients from the highest power down.
Operand polynomial(OpEmitter& emit, const Operand& x, const std::vector<double>& coefficients) {
  Operand sum = number(emit, coefficients[0], x);
  for (size_t i = 1; i < coefficients.size(); ++i) {
    const Operand product = multiply(emit, x, sum);
    sum = coefficients[i] == 0 ? product : add(emit, product, number(emit, coefficients[i], x));
  }
  return sum;
}

// The nearest number of `bits` significant bits.
double shortened(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::round(std::ldexp(fraction, bits)), exponent - bits);
}

// x = quarters * pi / 2 + angle: the sine and cosine of the angle, and quarters modulo 4.
struct Quarter {
  Operand sine, cosine, quadrant;

  Operand is_odd(OpEmitter& emit) const {
    const Operand pairs = emit.op(OpId::floor, {multiply(emit, quadrant, 0.5)});
    return subtract(emit, quadrant, multiply(emit, pairs, 2));
  }
};
Quarter quarter_of(OpEmitter& emit, const Operand& x) {
  constexpr double kQuarter = std::numbers::pi / 2, kDigit = 4096;
  // Counts and constants in parts of 12 bits: their products have 24, and are exact.
  static const double kFirst = shortened(kQuarter, 12), kSecond = shortened(kQuarter - kFirst, 12);
  const Operand quarters = nearest(emit, multiply(emit, x, 1 / kQuarter));
  const Operand high = multiply(emit, nearest(emit, multiply(emit, quarters, 1 / kDigit)), kDigit);
  const Operand low = subtract(emit, quarters, high);
  Operand angle = x;
  for (const double part : {kFirst, kSecond}) {
    angle = subtract(emit, angle, multiply(emit, high, part));
    angle = subtract(emit, angle, multiply(emit, low, part));
  }
  angle = subtract(emit, angle, multiply(emit, quarters, kQuarter - kFirst - kSecond));
  const Operand square = multiply(emit, angle, angle);
  const Operand rest =
      polynomial(emit, square, {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 0});
  const Operand cosine = polynomial(
      emit, square, {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0});
  const Operand turns = emit.op(OpId::floor, {multiply(emit, quarters, 0.25)});
  return {add(emit, angle, multiply(emit, angle, rest)), cosine,
          subtract(emit, quarters, multiply(emit, turns, 4))};
}

// 2 artanh(x / y) = log((y + x) / (y - x)), for |x / y| up to 0.25.
Operand twice_artanh(OpEmitter& emit, const Operand& x, const Operand& y) {
  const Operand ratio = emit.op(OpId::realdiv, {x, y});
  const Operand square = multiply(emit, ratio, ratio);
  const Operand rest = polynomial(emit, square, {1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 0});
  const Operand twice = add(emit, ratio, ratio);
  return add(emit, twice, multiply(emit, twice, rest));
}

constexpr double kNearOne = 0.4;  // where logarithms are series

Operand is_within(OpEmitter& emit, const Operand& x, double limit) {
  return emit.op(OpId::lesserequal, {emit.op(OpId::abs, {x}), number(emit, limit, x)});
}

// Away from 1. The card's logarithm is 16-bit; two steps of Halley's method on exp make it fp32. The root is taken
// first, three times for the first guess, so that neither the 16-bit format nor exp ends before fp32 does:
// log x = 2 log r, r = sqrt x.
Operand far_logarithm(OpEmitter& emit, const Operand& x) {
  const Operand root = emit.op(OpId::sqrt, {x});
  const Operand eighth = emit.op(OpId::sqrt, {emit.op(OpId::sqrt, {root})});
  const Operand guess = emit.hold(emit.op(OpId::log, {emit.hold(eighth, Held::kFp16)}), Held::kFp32);
  Operand y = multiply(emit, guess, 4);
  for (int step = 0; step < 2; ++step) {
    const Operand e = emit.op(OpId::exp, {y});
    const Operand step_size = emit.op(OpId::realdiv, {subtract(emit, root, e), add(emit, root, e)});
    y = add(emit, y, multiply(emit, step_size, 2));
  }
  y = multiply(emit, y, 2);
  // In 16 bits the infinite ends are not numbers.
  const Operand infinite = number(emit, INFINITY, x);
  y = choose(emit, emit.op(OpId::equal, {x, infinite}), infinite, y);
  return choose(emit, emit.op(OpId::equal, {x, number(emit, 0, x)}), number(emit, -INFINITY, x), y);
}

// The error function up to 1, by its series.
Operand erf_below_one(OpEmitter& emit, const Operand& x) {
  constexpr int kTerms = 12;
  std::vector<double> coefficients;
  double factorial = 1;
  for (int k = 0; k < kTerms; ++k) {
    factorial *= k == 0 ? 1 : -k;
    coefficients.insert(coefficients.begin(), 2 * std::numbers::inv_sqrtpi / (factorial * (2 * k + 1)));
  }
  return multiply(emit, x, polynomial(emit, multiply(emit, x, x), coefficients));
}
// x = high + low, each of 12 bits (Veltkamp).
struct HighLow {
  Operand high, low;
};
HighLow high_low_of(OpEmitter& emit, const Operand& x) {
  const Operand scaled = multiply(emit, x, 4097);
  const Operand high = subtract(emit, scaled, subtract(emit, scaled, x));
  return {high, subtract(emit, x, high)};
}

// erfc(x) = t exp(p(t) - x^2), t = 1 / (1 + x / 2): p is a Chebyshev fit over 1 to 12, off by 6e-9; beyond there is
// nothing left in fp32. The square of the high part of x is exact, and what is left of x^2 is small.
Operand erfc_beyond_one(OpEmitter& emit, const Operand& given) {
  const Operand size = clipped(emit, given, 0, 12), one = number(emit, 1, given);
  const Operand t = emit.op(OpId::reciprocal, {add(emit, multiply(emit, size, 0.5), one)});
  const Operand p =
      polynomial(emit, t,
                 {-0.261979648702, 0.717998065304, -0.557233430725, 0.020736845306, -0.115343572415,
                  0.0845675672887, 0.375452232231, 0.999924195302, -1.26550846761});
  const HighLow x = high_low_of(emit, size);
  const Operand rest = subtract(emit, p, multiply(emit, x.low, add(emit, size, x.high)));
  const Operand most = emit.op(OpId::exp, {emit.op(OpId::neg, {multiply(emit, x.high, x.high)})});
  return multiply(emit, multiply(emit, t, emit.op(OpId::exp, {rest})), most);
}

// x - quotient * y without the rounding of the product; x itself where the quotient is zero, y infinite perhaps.
Operand rest_of(OpEmitter& emit, const Operand& x, const Operand& quotient, const Operand& y,
                const HighLow& of_y) {
  const HighLow q = high_low_of(emit, quotient);
  Operand rest = x;
  for (const auto& [a, b] : std::array{std::pair{q.high, of_y.high}, std::pair{q.high, of_y.low},
                                       std::pair{q.low, of_y.high}, std::pair{q.low, of_y.low}}) {
    rest = subtract(emit, rest, multiply(emit, a, b));
  }
  // A quotient that was rounded up leaves too little.
  rest = choose(emit, emit.op(OpId::lesserthan, {rest, number(emit, 0, rest)}), add(emit, rest, y), rest);
  return choose(emit, quotient, rest, x);
}

}  // namespace

Operand number(OpEmitter& emit, double value, const Operand& like) {
  Operand constant = emit.constant(value, HostType::kFloat32);
  constant.held = like.held;
  return constant;
}

Operand sine(OpEmitter& emit, const Operand& x) {
  const Quarter q = quarter_of(emit, x);
  const Operand size = choose(emit, q.is_odd(emit), q.cosine, q.sine);
  return choose(emit, emit.op(OpId::greaterequal, {q.quadrant, number(emit, 2, x)}),
                emit.op(OpId::neg, {size}), size);
}

Operand cosine(OpEmitter& emit, const Operand& x) {
  const Quarter q = quarter_of(emit, x);
  const Operand size = choose(emit, q.is_odd(emit), q.sine, q.cosine);
  // Negative in quadrants 1 and 2.
  const Operand from_middle = emit.op(OpId::abs, {subtract(emit, q.quadrant, number(emit, 1.5, x))});
  return choose(emit, emit.op(OpId::lesserthan, {from_middle, number(emit, 1, x)}),
                emit.op(OpId::neg, {size}), size);
}

Operand error_function(OpEmitter& emit, const Operand& x) {
  const Operand zero = number(emit, 0, x), one = number(emit, 1, x);
  const Operand far = subtract(emit, one, erfc_beyond_one(emit, emit.op(OpId::abs, {x})));
  const Operand signed_far =
      choose(emit, emit.op(OpId::lesserthan, {x, zero}), emit.op(OpId::neg, {far}), far);
  return choose(emit, is_within(emit, x, 1), erf_below_one(emit, x), signed_far);
}

Operand wide_gelu(OpEmitter& emit, const Operand& x) {
  const Operand one = number(emit, 1, x);
  const Operand size = emit.op(OpId::abs, {multiply(emit, x, 1 / std::numbers::sqrt2)});
  const Operand near = subtract(emit, one, erf_below_one(emit, size));
  const Operand above =
      multiply(emit, choose(emit, is_within(emit, size, 1), near, erfc_beyond_one(emit, size)), 0.5);
  const Operand is_negative = emit.op(OpId::lesserthan, {x, number(emit, 0, x)});
  return multiply(emit, x, choose(emit, is_negative, above, subtract(emit, one, above)));
}

Operand wide_logarithm(OpEmitter& emit, const Operand& x) {
  const Operand one = number(emit, 1, x);
  const Operand beyond = subtract(emit, x, one);
  const Operand near = twice_artanh(emit, beyond, add(emit, x, one));
  return choose(emit, is_within(emit, beyond, kNearOne), near, far_logarithm(emit, x));
}

Operand log_of_one_plus(OpEmitter& emit, const Operand& x) {
  const Operand near = twice_artanh(emit, x, add(emit, x, number(emit, 2, x)));
  return choose(emit, is_within(emit, x, kNearOne), near,
                far_logarithm(emit, add(emit, x, number(emit, 1, x))));
}

Operand exp_minus_one(OpEmitter& emit, const Operand& x) {
  const Operand series = multiply(
      emit, x,
      polynomial(emit, x,
                 {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1}));
  return choose(emit, is_within(emit, x, 0.5), series,
                subtract(emit, emit.op(OpId::exp, {x}), number(emit, 1, x)));
}

Operand power_of_two(OpEmitter& emit, const Operand& given) {
  // Whole powers times the first part of log 2 are exact. Beyond the clip there is nothing but 0 and infinity.
  static const double kFirst = shortened(std::numbers::ln2, 15);
  const Operand x = clipped(emit, given, -160, 160);
  const Operand whole = emit.op(OpId::floor, {x});
  const Operand rest = add(emit, multiply(emit, subtract(emit, x, whole), std::numbers::ln2),
                           multiply(emit, whole, std::numbers::ln2 - kFirst));
  return multiply(emit, emit.op(OpId::exp, {multiply(emit, whole, kFirst)}), emit.op(OpId::exp, {rest}));
}

Operand wide_tanh(OpEmitter& emit, const Operand& x) {
  const Operand bounded = clipped(emit, x, -10, 10);
  const Operand e = exp_minus_one(emit, add(emit, bounded, bounded));
  return emit.op(OpId::realdiv, {e, add(emit, e, number(emit, 2, x))});
}

Operand wide_softplus(OpEmitter& emit, const Operand& x, double beta, double threshold) {
  const Operand scaled = multiply(emit, x, beta);
  const Operand bounded = emit.op(OpId::minimum, {scaled, number(emit, threshold, x)});
  const Operand log = log_of_one_plus(emit, emit.op(OpId::exp, {bounded}));
  const Operand beyond = emit.op(OpId::greaterthan, {scaled, number(emit, threshold, x)});
  return choose(emit, beyond, x, multiply(emit, log, 1 / beta));
}

Operand truncated_remainder(OpEmitter& emit, const Operand& x, const Operand& y) {
  // Splitting a divisor near the end of the range would overflow: both are then made smaller, exactly.
  const Operand size = emit.op(OpId::abs, {y});
  const Operand is_huge = emit.op(OpId::greaterthan, {size, number(emit, 0x1p100, x)});
  const Operand scale = choose(emit, is_huge, number(emit, 0x1p-24, x), number(emit, 1, x));
  const Operand divisor = multiply(emit, size, scale);
  const HighLow parts = high_low_of(emit, divisor);
  Operand rest = multiply(emit, emit.op(OpId::abs, {x}), scale);
  for (int step = 0; step < 2; ++step) {
    const Operand quotient = emit.op(OpId::floor, {emit.op(OpId::realdiv, {rest, divisor})});
    rest = rest_of(emit, rest, quotient, divisor, parts);
  }
  rest = choose(emit, emit.op(OpId::greaterequal, {rest, divisor}), subtract(emit, rest, divisor), rest);
  rest = emit.op(OpId::realdiv, {rest, scale});
  return choose(emit, emit.op(OpId::lesserthan, {x, number(emit, 0, x)}), emit.op(OpId::neg, {rest}), rest);
}

Operand floored_remainder(OpEmitter& emit, const Operand& x, const Operand& y) {
  const Operand rest = truncated_remainder(emit, x, y);
  const Operand zero = number(emit, 0, x);
  const Operand other_sign = emit.op(
      OpId::notequal, {emit.op(OpId::lesserthan, {rest, zero}), emit.op(OpId::lesserthan, {y, zero})});
  const Operand moves = multiply(emit, other_sign, emit.op(OpId::notequal, {rest, zero}));
  return choose(emit, moves, add(emit, rest, y), rest);
}

Operand floored_quotient(OpEmitter& emit, const Operand& x, const Operand& y) {
  const Operand whole = emit.op(OpId::realdiv, {subtract(emit, x, floored_remainder(emit, x, y)), y});
  // To the nearest whole number; half of one cannot be added where numbers are whole.
  const Operand floor = emit.op(OpId::floor, {whole});
  const Operand up = emit.op(OpId::greaterthan, {subtract(emit, whole, floor), number(emit, 0.5, x)});
  const Operand is_zero = emit.op(OpId::equal, {y, number(emit, 0, x)});
  return choose(emit, is_zero, emit.op(OpId::realdiv, {x, y}), add(emit, floor, up));
}

}  // namespace spyre
