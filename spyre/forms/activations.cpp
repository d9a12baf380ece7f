// Formulas of one loop nest, as PyTorch's own decompositions write them, in the type of their operands.

#include <cmath>
#include <limits>
#include <numbers>

#include "spyre/forms/forms.h"
#include "spyre/forms/steps.h"

namespace spyre::forms {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Element both(const Element& x, const Element& y) {
  return call("logical_and", {x, y});
}
Element either(const Element& x, const Element& y) {
  return call("logical_or", {x, y});
}
Element absolute(const Element& x) {
  return call("abs", {x});
}
Element scaled(const Element& x, double factor) {
  return factor == 1 ? x : x * factor;
}
Element soft_plus(const Element& x) {
  return call("softplus", {x}, {{"beta", 1}, {"threshold", 20}});
}
/// Between 0 and 6.
Element sixth(const Element& x) {
  return call("clamp", {call("clamp", {x + 3.0}, {{"min", 0}})}, {{"max", 6}});
}

/// The largest number of the type on the host.
double largest(HostType type) {
  switch (type) {
    case HostType::kFloat16:
      return 65504;
    case HostType::kBFloat16:
      return 0x1.FEp127;
    default:
      return std::numeric_limits<float>::max();
  }
}

/// One tensor as a float.
Result<Element> float_of(const Builder& builder, const Argument& argument) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&argument}));
  if (!is_float(type)) {
    return refuse("a formula for floats, of integers");
  }
  return element(argument, type);
}

struct Pair {
  Element x, y;
  HostType type;
};

/// Two operands, as the float they have in common.
Result<Pair> floats_of(const Builder& builder, const Argument& x, const Argument& y) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&x, &y}));
  if (!is_float(type)) {
    return refuse("a formula for floats, of integers");
  }
  return Pair{element(x, type), element(y, type), type};
}

}  // namespace

Status fraction(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  fill(builder, 0, x - call("trunc", {x}));
  return Status();
}

Status heaviside(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  const Element x = element(args[0], type), below = x < 0.0;
  const Element none = is_float(type) ? either(below, call("isnan", {x})) : below;
  const Element step = where(none, cast(0.0, type), cast(1.0, type));
  fill(builder, 0, where(equal(x, 0.0), element(args[1], type), step));
  return Status();
}

Status log_of_sum(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [a, b, type] = pair;
  const Element mask = a >= b;
  const Element more = where(mask, a, b), less = where(mask, b, a);
  if (op == "exp2") {
    const Element sum = more + call("log1p", {call("exp2", {less - more})}) * (1 / std::numbers::ln2);
    fill(builder, 0, where(both(call("isinf", {a}), equal(a, b)), a, sum));
    return Status();
  }
  const Element finite = both(equal(a, a), call("ne", {absolute(a), kInfinity}));
  const Element infinite = both(call("logical_not", {finite}), equal(a, b));
  fill(builder, 0, where(infinite, a, more + call("log1p", {call("exp", {less - more})})));
  return Status();
}

Status logit(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float(builder, {&args[0]}));
  const double low = number(args[1], -1), high = 1 - low;
  const Element x = element(args[0], type);
  const Element kept = where(x < low, low, where(x > high, high, x));
  fill(builder, 0, call("log", {kept / (1.0 - kept)}));
  return Status();
}

Status nan_to_num(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  if (!is_float(type)) {
    return copy(builder, args, op);
  }
  const Element x = element(args[0], type);
  const Element known = where(call("isnan", {x}), number(args[1], 0), x);
  const Element above = where(equal(x, -kInfinity), number(args[3], -largest(type)), known);
  fill(builder, 0, where(equal(x, kInfinity), number(args[2], largest(type)), above));
  return Status();
}

Status sinc(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float(builder, {&args[0]}));
  const Element a = element(args[0], type) * std::numbers::pi;
  fill(builder, 0, where(equal(a, 0.0), 1.0, call("sin", {a}) / a));
  return Status();
}

Status entropy(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float(builder, {&args[0]}));
  const Element x = element(args[0], type);
  const Element outside = where(equal(x, 0.0), cast(0.0, type), cast(-kInfinity, type));
  const Element known = where(x > 0.0, call("neg", {x}) * call("log", {x}), outside);
  fill(builder, 0, where(call("isnan", {x}), x, known));
  return Status();
}

Status xlogy(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float(builder, {&args[0], &args[1]}));
  const Element x = element(args[0], type), y = element(args[1], type);
  const Element product = where(equal(x, 0.0), 0.0, x * call("log", {y}));
  fill(builder, 0, where(call("isnan", {y}), std::numeric_limits<double>::quiet_NaN(), product));
  return Status();
}

Status degrees(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float(builder, {&args[0]}));
  fill(builder, 0,
       element(args[0], type) * (op == "deg2rad" ? std::numbers::pi / 180 : 180 / std::numbers::pi));
  return Status();
}

Status infinite(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  const Element x = element(args[0], type);
  const Element never = call("ne", {x, x});
  fill(builder, 0, !is_float(type) ? never : equal(x, op == "positive" ? kInfinity : -kInfinity));
  return Status();
}

Status celu(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  const double alpha = number(args[1], 1);
  fill(builder, 0, where(x > 0.0, x, scaled(call("expm1", {x / alpha}), alpha)));
  return Status();
}

Status elu(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  const double alpha = number(args[1], 1), scale = number(args[2], 1), input_scale = number(args[3], 1);
  const Element below = scaled(call("expm1", {scaled(x, input_scale)}), alpha * scale);
  fill(builder, 0, where(x > 0.0, scaled(x, scale), below));
  return Status();
}

Status hardshrink(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  fill(builder, 0, where(absolute(x) <= number(args[1], 0.5), 0.0, x));
  return Status();
}

Status softshrink(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  const double lambda = number(args[1], 0.5);
  // Times 0: what is not a number stays so.
  fill(builder, 0, where(absolute(x) > lambda, x - call("sign", {x}) * lambda, x * 0.0));
  return Status();
}

Status hardsigmoid(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  fill(builder, 0, sixth(x) / 6.0);
  return Status();
}

Status hardswish(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  fill(builder, 0, x * sixth(x) / 6.0);
  return Status();
}

Status log_sigmoid(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  const Element decay = call("exp", {call("neg", {absolute(x)})});
  fill(builder, 0, call("minimum", {0.0, x}) - call("log1p", {decay}));
  if (builder.wants(1)) {
    fill(builder, 1, decay);
  }
  return Status();
}

Status mish(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Element x, float_of(builder, args[0]));
  fill(builder, 0, x * call("tanh", {soft_plus(x)}));
  return Status();
}

Status prelu(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  fill(builder, 0, where(pair.x > 0.0, pair.x, pair.y * pair.x));
  return Status();
}

Status threshold(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  const Element x = element(args[0], type);
  fill(builder, 0, where(x <= number(args[1]), number(args[2]), x));
  return Status();
}

Status glu(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1], -1), x.size.size()));
  const int64_t half = x.size[dim] / 2;
  if (!is_float(x.dtype) || 2 * half != x.size[dim]) {
    return refuse("values and gates that are not as many");
  }
  fill(builder, 0, Element(narrow(x, dim, 0, half)) * call("sigmoid", {narrow(x, dim, half, half)}));
  return Status();
}

// ---- gradients

Status elu_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[5]));
  const auto& [gradient, y, type] = pair;
  const double below = number(args[1]) * number(args[2]), above = number(args[2]), inner = number(args[3]);
  const Element into = scaled(gradient, inner);
  const Element negative =
      flag(args[4]) ? into * (y + below) : scaled(into, below) * call("exp", {scaled(y, inner)});
  fill(builder, 0, where(y <= 0.0, negative, scaled(gradient, above)));
  return Status();
}

Status gelu_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [gradient, x, type] = pair;
  const double two_by_root_pi = 2 * std::numbers::inv_sqrtpi;
  if (text(args[2]) == "tanh") {
    const double beta = std::numbers::sqrt2 * two_by_root_pi * 0.5, kappa = 0.044715;
    const Element square = x * x, cube = square * x;
    const Element tangent = call("tanh", {(x + cube * kappa) * beta});
    const Element left = x * 0.5, right = tangent + 1.0;
    const Element slope_of_tangent = 1.0 - tangent * tangent;
    const Element slope_of_inner = (square * (3 * kappa) + 1.0) * beta;
    fill(builder, 0, gradient * (right * 0.5 + left * slope_of_tangent * slope_of_inner));
    return Status();
  }
  const double alpha = std::numbers::sqrt2 / 2, beta = two_by_root_pi * alpha * 0.5;
  const Element below = (call("erf", {x * alpha}) + 1.0) * 0.5;
  const Element density = call("exp", {x * x * -0.5}) * beta;
  fill(builder, 0, gradient * (below + x * density));
  return Status();
}

Status hardsigmoid_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [gradient, x, type] = pair;
  fill(builder, 0, where(both(x > -3.0, x < 3.0), gradient * (1.0 / 6.0), 0.0));
  return Status();
}

Status hardswish_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [gradient, x, type] = pair;
  fill(builder, 0, where(x <= -3.0, 0.0, where(x < 3.0, gradient * (x / 3.0 + 0.5), gradient)));
  return Status();
}

Status hardtanh_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [gradient, x, type] = pair;
  fill(builder, 0, where(either(x <= number(args[2]), x >= number(args[3])), 0.0, gradient));
  return Status();
}

Status leaky_relu_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [gradient, x, type] = pair;
  fill(builder, 0, where(x > 0.0, gradient, gradient * number(args[2])));
  return Status();
}

Status log_sigmoid_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [gradient, x, type] = pair;
  const Element below = x < 0.0;
  const Element most = where(below, cast(1.0, type), cast(0.0, type));
  const Element sign = where(below, cast(1.0, type), cast(-1.0, type));
  const bool kept = element_count(tensor(args[2])) > 0;
  const Element decay = kept ? element(args[2], type) : call("exp", {call("neg", {absolute(x)})});
  fill(builder, 0, gradient * (most - sign * (decay / (decay + 1.0))));
  return Status();
}

Status mish_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [gradient, x, type] = pair;
  const Element tangent = call("tanh", {soft_plus(x)});
  const Element rest = x * call("sigmoid", {x}) * (1.0 - tangent * tangent);
  fill(builder, 0, gradient * (tangent + rest));
  return Status();
}

Status softplus_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const auto& [gradient, x, type] = pair;
  const Element inner = scaled(x, number(args[2])), power = call("exp", {inner});
  fill(builder, 0, where(inner > number(args[3]), gradient, gradient * power / (power + 1.0)));
  return Status();
}

// ---- losses

namespace {

/// The loss of each element, or what PyTorch's number for it says: 1 their mean, 2 their sum.
Status reduced_loss(Builder& builder, const Element& each, int64_t reduction) {
  if (reduction == 0) {
    fill(builder, 0, each);
    return Status();
  }
  const TensorView loss = compute(builder, each);
  const std::vector<bool> all(loss.size.size(), true);
  fold_result(builder, 0, reduction == 1 ? "mean" : "sum", loss, all, false);
  return Status();
}

}  // namespace

Status mse_loss(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  return reduced_loss(builder, call("pow", {pair.x - pair.y, 2.0}), integer(args[2], 1));
}

Status huber_loss(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const double delta = number(args[3], 1);
  const Element z = absolute(pair.x - pair.y);
  const Element loss = where(z < delta, z * 0.5 * z, (z - 0.5 * delta) * delta);
  return reduced_loss(builder, loss, integer(args[2], 1));
}

Status smooth_l1_loss(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[0], args[1]));
  const double beta = number(args[3], 1);
  const Element z = absolute(pair.x - pair.y);
  const Element loss = where(z < beta, call("pow", {z, 2.0}) * 0.5 / beta, z - 0.5 * beta);
  return reduced_loss(builder, loss, integer(args[2], 1));
}

Status mse_loss_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const auto pair, floats_of(builder, args[1], args[2]));
  const double count = static_cast<double>(element_count(tensor(args[1])));
  const double norm = integer(args[3]) == 1 ? 2.0 / count : 2.0;
  fill(builder, 0, (pair.x - pair.y) * norm * element(args[0], pair.type));
  return Status();
}

// ---- folds of a formula

Status both_extremes(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_ASSIGN_OR_RETURN(const std::vector<bool> folded, dimensions(args[1], x.size.size()));
  fold_result(builder, 0, "min", x, folded, flag(args[2]));
  fold_result(builder, 1, "max", x, folded, flag(args[2]));
  return Status();
}

Status count_nonzero(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  SPYRE_ASSIGN_OR_RETURN(const std::vector<bool> folded, dimensions(args[1], x.size.size()));
  fold_result(builder, 0, "sum", compute(builder, call("ne", {x, 0.0})), folded, false);
  return Status();
}

Status nansum(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  SPYRE_ASSIGN_OR_RETURN(const std::vector<bool> folded, dimensions(args[1], x.size.size()));
  const TensorView known = is_float(x.dtype) ? compute(builder, where(call("isnan", {x}), 0.0, x)) : x;
  fold_result(builder, 0, "sum", known, folded, flag(args[2]));
  return Status();
}

}  // namespace spyre::forms
