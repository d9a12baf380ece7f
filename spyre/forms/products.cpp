// Matrix products.

#include <fmt/format.h>

#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

/// Sums products over the reduced loops, as `dtype`. Of fp32 values as many 16-bit parts are multiplied as the user
/// asked for.
Value sum_of_products(const Builder& builder, NodeBuilder& node, Value x, Value w, HostType dtype) {
  if (node.dtype(x) != HostType::kFloat32) {
    return node.dot(x, w, dtype);
  }
  return node.dot(x, w, dtype, {{"parts", builder.options().float32_parts}});
}

/// The product of two matrices, or of two stacks of them that broadcast, at the current point of a node with the loops
/// (batch,) m, n and the reduced loop k.
Value product(Builder& builder, NodeBuilder& node, const TensorView& a, const TensorView& b, HostType dtype) {
  if (a.size.back() == 0) {
    return node.constant(0, dtype);  // operands without elements have no memory to read
  }
  const size_t batches = a.size.size() - 2;
  std::vector<Expr> left, right;
  for (size_t i = 0; i < batches; ++i) {
    left.push_back(node.loop(i));
    right.push_back(node.loop(i));
  }
  const Expr m = node.loop(batches), n = node.loop(batches + 1), k = node.loop(batches + 2);
  left.insert(left.end(), {m, k});
  right.insert(right.end(), {k, n});
  const Value x = node.load(a, left);
  return sum_of_products(builder, node, x, node.load(b, right), dtype);
}

/// Two tensors with these numbers of dimensions, of numbers that the card multiplies.
Status check(const TensorView& a, const TensorView& b, size_t rank_of_a, size_t rank_of_b) {
  if (a.size.size() != rank_of_a || b.size.size() != rank_of_b || rank_of_a == 0 || rank_of_b == 0) {
    return refuse(
        fmt::format("a product of tensors with {} and {} dimensions", a.size.size(), b.size.size()));
  }
  switch (a.dtype) {
    case HostType::kFloat16:
    case HostType::kBFloat16:
    case HostType::kFloat32:
    case HostType::kInt32:
    case HostType::kInt64:
      return Status();
    default:
      return refuse(fmt::format("a matrix product in {}; the card multiplies floats and 32-bit integers",
                                to_string(a.dtype)));
  }
}

}  // namespace

Status matmul(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &a = tensor(args[0]), &b = tensor(args[1]);
  const size_t rank = builder.result().size.size();
  SPYRE_TRY(check(a, b, rank, rank));
  NodeBuilder node = builder.node(builder.result(), builder.result().size, {a.size.back()});
  node.store(product(builder, node, a, b, builder.result().dtype));
  return Status();
}

Status add_matmul(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &a = tensor(args[1]), &b = tensor(args[2]);
  const double beta = number(args[3], 1), alpha = number(args[4], 1);
  const std::vector<int64_t> size = builder.result().size;
  SPYRE_TRY(check(a, b, size.size(), size.size()));
  SPYRE_ASSIGN_OR_RETURN(const HostType type, arithmetic_type(a.dtype));
  // The product rounds before the sum: the card's matrix unit has no third operand.
  const bool is_sum = beta != 0 || alpha != 1;
  const TensorView products = is_sum ? builder.local(size, type) : builder.result();
  NodeBuilder multiply = builder.node(products, size, {a.size.back()});
  multiply.store(product(builder, multiply, a, b, type));
  if (!is_sum) {
    return Status();
  }
  NodeBuilder node = builder.node(builder.result(), size);
  const auto scaled = [&](Value value, double factor) {
    return factor == 1 ? value : node.op("mul", {value, node.constant(factor, type)});
  };
  const Value sum = scaled(node.load(products), alpha);
  // A factor of zero means that `self` is not looked at, even where it is not a number.
  node.store(beta == 0 ? sum : node.op("add", {scaled(operand(node, args[0], type), beta), sum}));
  return Status();
}

Status matrix_vector(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &a = tensor(args[0]), &x = tensor(args[1]);
  SPYRE_TRY(check(a, x, builder.result().size.size() + 1, 1));
  NodeBuilder node = builder.node(builder.result(), builder.result().size, {x.size[0]});
  if (x.size[0] == 0) {
    node.store(node.constant(0, a.dtype));
    return Status();
  }
  const Expr k = node.loop(node.output_loops());
  const Value row = node.load(a, a.size.size() == 1 ? std::vector{k} : std::vector{node.loop(0), k});
  node.store(sum_of_products(builder, node, row, node.load(x, {k}), node.dtype(row)));
  return Status();
}

}  // namespace spyre::forms
