// One loop nest over the result: each element from the elements that broadcasting puts beside it.

#include <cmath>

#include "glue/eager_recipes.h"

namespace spyre::glue {
namespace {

bool is_float(HostType type) {
  return !is_integer(type) && type != HostType::kBool;
}

/// A node over the whole result.
NodeBuilder over_result(GraphBuilder& graph) {
  return graph.node(graph.result(), graph.result_size());
}

/// (self, min?, max?) with numbers as bounds. Integers are compared with each bound in turn: the card's own clamp is for
/// floats.
Status clamp_between(GraphBuilder& graph, Arguments args, HostType type, std::string_view op) {
  const bool has_min = !args[1].isNone(), has_max = !args[2].isNone();
  NodeBuilder node = over_result(graph);
  Value value = operand(graph, node, args[0], type);
  if (is_float(type)) {
    std::vector<std::pair<std::string, double>> bounds;
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

std::string text_of(const c10::IValue& value) {
  return value.isNone() ? "" : value.toStringRef();
}

}  // namespace

Status unary(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0]}));
  NodeBuilder node = over_result(graph);
  node.store(node.op(op, {operand(graph, node, args[0], type)}));
  return Status();
}

Status unary_float(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float({&args[0]}));
  NodeBuilder node = over_result(graph);
  node.store(node.op(op, {operand(graph, node, args[0], type)}));
  return Status();
}

Status unary_rounding(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0]}));
  NodeBuilder node = over_result(graph);
  const Value x = operand(graph, node, args[0], type);
  node.store(is_integer(type) ? x : node.op(op, {x}));
  return Status();
}

Status binary(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  NodeBuilder node = over_result(graph);
  const Value x = operand(graph, node, args[0], type);
  node.store(node.op(op, {x, operand(graph, node, args[1], type)}));
  return Status();
}

Status binary_float(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_float({&args[0], &args[1]}));
  NodeBuilder node = over_result(graph);
  const Value x = operand(graph, node, args[0], type);
  node.store(node.op(op, {x, operand(graph, node, args[1], type)}));
  return Status();
}

Status binary_quotient(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  if (type == HostType::kBool) {
    return refuse("a quotient of truth values");
  }
  // PyTorch raises; in a tensor, where only the values know, it is a number, as on other accelerators.
  if (is_integer(type) && is_number(args[1]) && number(args[1]) == 0) {
    return refuse("integers divided by zero");
  }
  return binary(graph, args, op);
}

Status binary_product(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  return binary(graph, args, type == HostType::kBool ? "logical_and" : op);
}

Status sum_of(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  const double alpha = number(args[2]);
  NodeBuilder node = over_result(graph);
  const Value x = operand(graph, node, args[0], type);
  Value y = operand(graph, node, args[1], type);
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

Status reverse_difference(GraphBuilder& graph, Arguments args, std::string_view op) {
  const std::array<c10::IValue, 3> swapped = {args[1], args[0], args[2]};
  if (number(args[2]) == 1) {
    return sum_of(graph, swapped, op);
  }
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  NodeBuilder node = over_result(graph);
  const Value x = operand(graph, node, args[0], type);
  const Value scaled = node.op("mul", {x, node.constant(number(args[2]), type)});
  node.store(node.op(op, {operand(graph, node, args[1], type), scaled}));
  return Status();
}

Status divide(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const std::string mode = text_of(args[2]);
  if (mode.empty()) {
    return binary_float(graph, args, "truediv");
  }
  return binary_quotient(graph, args, mode == "floor" ? "floordiv" : "truncdiv");
}

Status power(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
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
  return binary(graph, args, op);
}

Status choose(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[1], &args[2]}));
  if (args[0].toTensor().scalar_type() != c10::kBool) {
    return refuse("a condition that is not bool");
  }
  NodeBuilder node = over_result(graph);
  const Value condition = operand(graph, node, args[0], HostType::kBool);
  const Value x = operand(graph, node, args[1], type);
  node.store(node.op(op, {condition, x, operand(graph, node, args[2], type)}));
  return Status();
}

Status fill_masked(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0]}));
  if (args[1].toTensor().scalar_type() != c10::kBool) {
    return refuse("a mask that is not bool");
  }
  NodeBuilder node = over_result(graph);
  const Value mask = operand(graph, node, args[1], HostType::kBool);
  const Value filled = operand(graph, node, args[2], type);
  node.store(node.op(op, {mask, filled, operand(graph, node, args[0], type)}));
  return Status();
}

Status clamp_numbers(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(HostType type, common_type({&args[0]}));
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (args[i].isNone()) {
      continue;
    }
    SPYRE_ASSIGN_OR_RETURN(const HostType wider, common_type({&args[0], &args[i]}));
    if (is_float(wider) || type == HostType::kBool) {
      type = wider;
    }
  }
  return clamp_between(graph, args, type, op);
}

Status clamp_tensors(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const c10::IValue& low = args[1].isNone() ? args[0] : args[1];
  const c10::IValue& high = args[2].isNone() ? args[0] : args[2];
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &low, &high}));
  NodeBuilder node = over_result(graph);
  Value value = operand(graph, node, args[0], type);
  if (!args[1].isNone()) {
    value = node.op("maximum", {value, operand(graph, node, low, type)});
  }
  if (!args[2].isNone()) {
    value = node.op("minimum", {value, operand(graph, node, high, type)});
  }
  node.store(value);
  return Status();
}

Status add_product(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1], &args[2]}));
  if (type == HostType::kBool) {
    return refuse("products of truth values");
  }
  NodeBuilder node = over_result(graph);
  const Value start = operand(graph, node, args[0], type);
  const Value x = operand(graph, node, args[1], type);
  Value product = node.op(op, {x, operand(graph, node, args[2], type)});
  if (number(args[3]) != 1) {
    product = node.op("mul", {product, node.constant(number(args[3]), type)});
  }
  node.store(node.op("add", {start, product}));
  return Status();
}

Status interpolate(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  if (!is_float(type)) {
    return refuse("PyTorch interpolates floats only");
  }
  NodeBuilder node = over_result(graph);
  const Value start = operand(graph, node, args[0], type);
  const Value way = node.op("sub", {operand(graph, node, args[1], type), start});
  node.store(node.op("add", {start, node.op("mul", {operand(graph, node, args[2], type), way})}));
  return Status();
}

Status gelu(GraphBuilder& graph, Arguments args, std::string_view op) {
  return unary(graph, args, text_of(args[1]) == "tanh" ? "gelu_tanh" : op);
}

Status softplus(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0]}));
  NodeBuilder node = over_result(graph);
  node.store(node.op(op, {operand(graph, node, args[0], type)},
                     {{"beta", number(args[1])}, {"threshold", number(args[2])}}));
  return Status();
}

Status leaky_relu(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0]}));
  NodeBuilder node = over_result(graph);
  const Value x = operand(graph, node, args[0], type);
  const Value positive = node.op("gt", {x, node.constant(0, type)});
  node.store(node.op(op, {positive, x, node.op("mul", {x, node.constant(number(args[1]), type)})}));
  return Status();
}

Status hardtanh(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0]}));
  return clamp_between(graph, args, type, op);
}

Status threshold_backward(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  if (!is_float(type)) {
    return refuse("a gradient of integers");
  }
  NodeBuilder node = over_result(graph);
  const Value gradient = operand(graph, node, args[0], type);
  const Value x = operand(graph, node, args[1], type);
  const Value below = node.op("le", {x, node.constant(number(args[2]), type)});
  node.store(node.op(op, {below, node.constant(0, type), gradient}));
  return Status();
}

Status sigmoid_backward(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  NodeBuilder node = over_result(graph);
  const Value gradient = operand(graph, node, args[0], type);
  const Value y = operand(graph, node, args[1], type);
  const Value slope = node.op("mul", {y, node.op("sub", {node.constant(1, type), y})});
  node.store(node.op(op, {gradient, slope}));
  return Status();
}

Status tanh_backward(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  NodeBuilder node = over_result(graph);
  const Value gradient = operand(graph, node, args[0], type);
  const Value y = operand(graph, node, args[1], type);
  node.store(node.op(op, {gradient, node.op("sub", {node.constant(1, type), node.op("mul", {y, y})})}));
  return Status();
}

Status silu_backward(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type({&args[0], &args[1]}));
  NodeBuilder node = over_result(graph);
  const Value gradient = operand(graph, node, args[0], type);
  const Value x = operand(graph, node, args[1], type);
  const Value one = node.constant(1, type);
  const Value gate = node.op("sigmoid", {x});
  // gate * (1 + x * (1 - gate))
  const Value tail = node.op("mul", {x, node.op("sub", {one, gate})});
  node.store(node.op(op, {gradient, node.op("mul", {gate, node.op("add", {one, tail})})}));
  return Status();
}

}  // namespace spyre::glue
