// One loop nest over the result: each element from the elements that broadcasting puts beside it.

#include <array>
#include <cmath>

#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

/// A node over the whole result.
NodeBuilder over_result(Builder& builder) {
  return builder.node(builder.result(), builder.result().size);
}

/// (self, min?, max?) with numbers as bounds. Integers are compared with each bound in turn: the card's own clamp is for
/// floats.
Status clamp_between(Builder& builder, Arguments args, HostType type, std::string_view op) {
  const bool has_min = !is_none(args[1]), has_max = !is_none(args[2]);
  NodeBuilder node = over_result(builder);
  Value value = operand(node, args[0], type);
  if (is_float(type)) {
    Attributes bounds;
    if (has_min) {
      bounds.emplace_back("min", number(args[1]));
    }
    if (has_max) {
      bounds.emplace_back("max", number(args[2]));
    }
    node.store(node.op(op, {value}, std::move(bounds)));
    return Status();
  }
  // hardtanh has bounds like -1.5, of integers their whole part.
  if (has_min) {
    value = node.op("maximum", {value, node.constant(std::trunc(number(args[1])), type)});
  }
  if (has_max) {
    value = node.op("minimum", {value, node.constant(std::trunc(number(args[2])), type)});
  }
  node.store(value);
  return Status();
}

}  // namespace

Status unary(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  NodeBuilder node = over_result(builder);
  node.store(node.op(op, {operand(node, args[0], type)}));
  return Status();
}

Status unary_float(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float(builder, {&args[0]}));
  NodeBuilder node = over_result(builder);
  node.store(node.op(op, {operand(node, args[0], type)}));
  return Status();
}

Status unary_rounding(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  NodeBuilder node = over_result(builder);
  const Value x = operand(node, args[0], type);
  node.store(is_integer(type) ? x : node.op(op, {x}));
  return Status();
}

Status binary(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  NodeBuilder node = over_result(builder);
  const Value x = operand(node, args[0], type);
  node.store(node.op(op, {x, operand(node, args[1], type)}));
  return Status();
}

Status binary_float(Builder& builder, Arguments args, std::string_view op) {
  if (!is_float(builder.result().dtype)) {
    return refuse("a quotient that is not a float");
  }
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float(builder, {&args[0], &args[1]}));
  NodeBuilder node = over_result(builder);
  const Value x = operand(node, args[0], type);
  node.store(node.op(op, {x, operand(node, args[1], type)}));
  return Status();
}

Status binary_quotient(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  if (type == HostType::kBool) {
    return refuse("a quotient of truth values");
  }
  // PyTorch raises; in a tensor, where only the values know, it is a number, as on other accelerators.
  if (is_integer(type) && is_number(args[1]) && number(args[1]) == 0) {
    return refuse("integers divided by zero");
  }
  return binary(builder, args, op);
}

Status binary_product(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  return binary(builder, args, type == HostType::kBool ? "logical_and" : op);
}

Status sum_of(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  const double alpha = number(args[2], 1);
  NodeBuilder node = over_result(builder);
  const Value x = operand(node, args[0], type);
  Value y = operand(node, args[1], type);
  if (type == HostType::kBool) {
    // Sums of truth values saturate; of a factor it matters only whether it is zero.
    if (op != "add") {
      return refuse("a difference of truth values");
    }
    node.store(alpha == 0 ? x : node.op("logical_or", {x, y}));
    return Status();
  }
  if (alpha != 1) {
    y = node.op("mul", {y, node.constant(alpha, type)});
  }
  node.store(node.op(op, {x, y}));
  return Status();
}

Status reverse_difference(Builder& builder, Arguments args, std::string_view op) {
  const std::array<Argument, 3> swapped = {args[1], args[0], args[2]};
  if (number(args[2], 1) == 1) {
    return sum_of(builder, Arguments(swapped), op);
  }
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  NodeBuilder node = over_result(builder);
  const Value x = operand(node, args[0], type);
  const Value scaled = node.op("mul", {x, node.constant(number(args[2]), type)});
  node.store(node.op(op, {operand(node, args[1], type), scaled}));
  return Status();
}

Status divide(Builder& builder, Arguments args, std::string_view /*op*/) {
  const std::string_view mode = text(args[2]);
  if (mode.empty()) {
    return binary_float(builder, args, "truediv");
  }
  return binary_quotient(builder, args, mode == "floor" ? "floordiv" : "truncdiv");
}

Status power(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  if (type == HostType::kBool) {
    return refuse("a power of truth values");
  }
  if (is_integer(type) && (!is_number(args[1]) || number(args[1]) < 0)) {
    return refuse("a power of integers with a tensor or a negative number as exponent");
  }
  // By way of the logarithm a negative base is not a number even where the exponent is whole.
  if (is_number(args[0]) && number(args[0]) <= 0) {
    return refuse("a power of a number that is not positive");
  }
  const bool whole = is_number(args[1]) && number(args[1]) == std::floor(number(args[1]));
  if (whole && std::fabs(number(args[1])) > 64) {
    return refuse("a power beyond 64");
  }
  return binary(builder, args, op);
}

Status choose(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[1], &args[2]}));
  if (!is_bool(args[0])) {
    return refuse("a condition that is not bool");
  }
  NodeBuilder node = over_result(builder);
  const Value condition = operand(node, args[0], HostType::kBool);
  const Value x = operand(node, args[1], type);
  node.store(node.op(op, {condition, x, operand(node, args[2], type)}));
  return Status();
}

Status fill_masked(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  if (!is_bool(args[1])) {
    return refuse("a mask that is not bool");
  }
  NodeBuilder node = over_result(builder);
  const Value mask = operand(node, args[1], HostType::kBool);
  const Value filled = operand(node, args[2], type);
  node.store(node.op(op, {mask, filled, operand(node, args[0], type)}));
  return Status();
}

Status clamp_numbers(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(HostType type, common_type(builder, {&args[0]}));
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (is_none(args[i])) {
      continue;
    }
    SPYRE_ASSIGN_OR_RETURN(const HostType wider, common_type(builder, {&args[0], &args[i]}));
    if (is_float(wider) || type == HostType::kBool) {
      type = wider;
    }
  }
  return clamp_between(builder, args, type, op);
}

Status clamp_tensors(Builder& builder, Arguments args, std::string_view /*op*/) {
  const Argument& low = is_none(args[1]) ? args[0] : args[1];
  const Argument& high = is_none(args[2]) ? args[0] : args[2];
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &low, &high}));
  NodeBuilder node = over_result(builder);
  Value value = operand(node, args[0], type);
  if (!is_none(args[1])) {
    value = node.op("maximum", {value, operand(node, low, type)});
  }
  if (!is_none(args[2])) {
    value = node.op("minimum", {value, operand(node, high, type)});
  }
  node.store(value);
  return Status();
}

Status add_product(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1], &args[2]}));
  if (type == HostType::kBool) {
    return refuse("products of truth values");
  }
  NodeBuilder node = over_result(builder);
  const Value start = operand(node, args[0], type);
  const Value x = operand(node, args[1], type);
  Value product = node.op(op, {x, operand(node, args[2], type)});
  if (number(args[3], 1) != 1) {
    product = node.op("mul", {product, node.constant(number(args[3]), type)});
  }
  node.store(node.op("add", {start, product}));
  return Status();
}

Status interpolate(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  if (!is_float(type)) {
    return refuse("PyTorch interpolates floats only");
  }
  NodeBuilder node = over_result(builder);
  const Value start = operand(node, args[0], type);
  const Value way = node.op("sub", {operand(node, args[1], type), start});
  node.store(node.op("add", {start, node.op("mul", {operand(node, args[2], type), way})}));
  return Status();
}

Status gelu(Builder& builder, Arguments args, std::string_view op) {
  return unary(builder, args, text(args[1]) == "tanh" ? "gelu_tanh" : op);
}

Status softplus(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  NodeBuilder node = over_result(builder);
  node.store(node.op(op, {operand(node, args[0], type)},
                     {{"beta", number(args[1], 1)}, {"threshold", number(args[2], 20)}}));
  return Status();
}

Status leaky_relu(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  NodeBuilder node = over_result(builder);
  const Value x = operand(node, args[0], type);
  const Value positive = node.op("gt", {x, node.constant(0, type)});
  node.store(node.op(op, {positive, x, node.op("mul", {x, node.constant(number(args[1], 0.01), type)})}));
  return Status();
}

Status hardtanh(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0]}));
  const std::array<Argument, 3> bounded = {args[0], Number{number(args[1], -1)}, Number{number(args[2], 1)}};
  return clamp_between(builder, Arguments(bounded), type, op);
}

Status threshold_backward(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  if (!is_float(type)) {
    return refuse("a gradient of integers");
  }
  NodeBuilder node = over_result(builder);
  const Value gradient = operand(node, args[0], type);
  const Value x = operand(node, args[1], type);
  const Value below = node.op("le", {x, node.constant(number(args[2]), type)});
  node.store(node.op(op, {below, node.constant(0, type), gradient}));
  return Status();
}

Status sigmoid_backward(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  NodeBuilder node = over_result(builder);
  const Value gradient = operand(node, args[0], type);
  const Value y = operand(node, args[1], type);
  const Value slope = node.op("mul", {y, node.op("sub", {node.constant(1, type), y})});
  node.store(node.op(op, {gradient, slope}));
  return Status();
}

Status tanh_backward(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  NodeBuilder node = over_result(builder);
  const Value gradient = operand(node, args[0], type);
  const Value y = operand(node, args[1], type);
  node.store(node.op(op, {gradient, node.op("sub", {node.constant(1, type), node.op("mul", {y, y})})}));
  return Status();
}

Status silu_backward(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  NodeBuilder node = over_result(builder);
  const Value gradient = operand(node, args[0], type);
  const Value x = operand(node, args[1], type);
  const Value one = node.constant(1, type);
  const Value gate = node.op("sigmoid", {x});
  // gate * (1 + x * (1 - gate))
  const Value tail = node.op("mul", {x, node.op("sub", {one, gate})});
  node.store(node.op(op, {gradient, node.op("mul", {gate, node.op("add", {one, tail})})}));
  return Status();
}

}  // namespace spyre::forms
