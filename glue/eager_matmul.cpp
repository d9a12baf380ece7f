// Matrix products.

#include <ATen/Context.h>

#include "glue/eager_recipes.h"

namespace spyre::glue {
namespace {

/// Sums products over the reduced loops, as `dtype`. Of fp32 values as many 16-bit parts are multiplied as the user
/// asked for.
Value sum_of_products(NodeBuilder& node, Value x, Value w, HostType dtype) {
  if (node.dtype(x) != HostType::kFloat32) {
    return node.dot(x, w, dtype);
  }
  return node.dot(x, w, dtype, {{"parts", float32_parts()}});
}

/// The product of two matrices, or of two equal stacks of them, at the current point of a node with the loops
/// (batch,) m, n and the reduced loop k.
Value product(GraphBuilder& graph, NodeBuilder& node, const at::Tensor& a, const at::Tensor& b,
              HostType dtype) {
  if (a.size(-1) == 0) {
    return node.constant(0, dtype);  // operands without elements have no memory to read
  }
  const size_t batches = static_cast<size_t>(a.dim()) - 2;
  std::vector<Expr> left, right;
  for (size_t i = 0; i < batches; ++i) {
    left.push_back(node.loop(i));
    right.push_back(node.loop(i));
  }
  const Expr m = node.loop(batches), n = node.loop(batches + 1), k = node.loop(batches + 2);
  left.insert(left.end(), {m, k});
  right.insert(right.end(), {k, n});
  const Value x = node.load(graph.input(a), left);
  return sum_of_products(node, x, node.load(graph.input(b), right), dtype);
}

Status check_type(const at::Tensor& a) {
  switch (a.scalar_type()) {
    case c10::kHalf:
    case c10::kBFloat16:
    case c10::kFloat:
    case c10::kInt:
    case c10::kLong:
      return Status();
    default:
      return refuse(c10::str("a matrix product in ", a.scalar_type(),
                             "; the card multiplies floats and 32-bit integers"));
  }
}

}  // namespace

int float32_parts() {
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGHEST:
      return 3;
    case at::Float32MatmulPrecision::HIGH:
      return 2;
    case at::Float32MatmulPrecision::MEDIUM:
      return 1;
  }
  return 3;
}

Status matmul(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor &a = args[0].toTensor(), &b = args[1].toTensor();
  SPYRE_TRY(check_type(a));
  NodeBuilder node = graph.node(graph.result(), graph.result_size(), {a.size(-1)});
  node.store(product(graph, node, a, b, graph.buffer(graph.result()).dtype));
  return Status();
}

Status add_matmul(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor &a = args[1].toTensor(), &b = args[2].toTensor();
  const double beta = number(args[3]), alpha = number(args[4]);
  SPYRE_TRY(check_type(a));
  SPYRE_ASSIGN_OR_RETURN(const HostType type, arithmetic_type(a.scalar_type()));
  const std::vector<int64_t> size = graph.result_size();
  // The product rounds before the sum: the card's matrix unit has no third operand.
  const BufferId products = beta == 0 && alpha == 1 ? graph.result() : graph.local(size, type);
  NodeBuilder multiply = graph.node(products, size, {a.size(-1)});
  multiply.store(product(graph, multiply, a, b, type));
  if (products == graph.result()) {
    return Status();
  }
  NodeBuilder node = graph.node(graph.result(), size);
  const auto scaled = [&](Value value, double factor) {
    return factor == 1 ? value : node.op("mul", {value, node.constant(factor, type)});
  };
  const Value sum = scaled(node.load(products), alpha);
  // A factor of zero means that `self` is not looked at, even where it is not a number.
  node.store(beta == 0 ? sum : node.op("add", {scaled(operand(graph, node, args[0], type), beta), sum}));
  return Status();
}

Status matrix_vector(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor &a = args[0].toTensor(), &x = args[1].toTensor();
  SPYRE_TRY(check_type(a));
  NodeBuilder node = graph.node(graph.result(), graph.result_size(), {x.size(0)});
  if (x.size(0) == 0) {
    node.store(node.constant(0, host_type_of(a.scalar_type())));
    return Status();
  }
  const Expr k = node.loop(node.output_loops());
  const Value row = node.load(graph.input(a), a.dim() == 1 ? std::vector{k} : std::vector{node.loop(0), k});
  node.store(sum_of_products(node, row, node.load(graph.input(x), {k}), node.dtype(row)));
  return Status();
}

}  // namespace spyre::glue
