// Matrix products.

#include <fmt/format.h>

#include <algorithm>

#include "spyre/forms/forms.h"
#include "spyre/forms/steps.h"

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

TensorView product(Builder& builder, const TensorView& a, const TensorView& b, HostType dtype) {
  const size_t rank = a.size.size();
  std::vector<int64_t> size = a.size;
  size[rank - 1] = b.size[rank - 1];
  for (size_t d = 0; d + 2 < rank; ++d) {
    size[d] = std::max(a.size[d], b.size[d]);
  }
  const TensorView products = builder.local(std::move(size), dtype);
  NodeBuilder node = builder.node(products, products.size, {a.size.back()});
  node.store(product(builder, node, a, b, dtype));
  return products;
}

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

namespace {

// Rows are taken so many at a time that all their products fit, and that their numbers are exact in 16 bits.
constexpr int64_t kRowsAtOnce = 1024;
constexpr int64_t kProductsAtOnce = int64_t{1} << 26;

/// [groups, count]: whether row `first + i` is in a group, the number of groups that end before it.
TensorView members(Builder& builder, const TensorView& ends, int64_t first, int64_t count) {
  constexpr HostType kHalves = HostType::kFloat16;
  const Element from_first = cast(ends, HostType::kFloat32) - static_cast<double>(first);
  const Element inside = call("clamp", {from_first}, {{"min", 0.0}, {"max", static_cast<double>(count)}});
  const TensorView end = unsqueeze(compute(builder, cast(inside, kHalves)), 1);
  const TensorView rows = counting(builder, count, kHalves);
  const TensorView before = compute(builder, cast(Element(end) <= rows, kHalves));
  const TensorView group = fold(builder, "sum", before, {true, false}, /*keepdim=*/false);
  return compute(builder, equal(unsqueeze(counting(builder, ends.size[0], kHalves), 1), group));
}

/// [M, S] times [S, N], a sum for each group of S: [groups, M, N].
void grouped_sums(Builder& builder, const TensorView& x, const TensorView& y, const TensorView& ends) {
  const int64_t length = x.size[1];
  std::optional<Element> sum;
  for (int64_t first = 0; first < length; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, length - first);
    const TensorView mine = unsqueeze(members(builder, ends, first, count), 1);
    const TensorView own = compute(builder, where(mine, narrow(x, 1, first, count), 0.0));
    const TensorView part = product(builder, own, unsqueeze(narrow(y, 0, first, count), 0), x.dtype);
    sum = sum ? Element(compute(builder, *sum + part)) : Element(part);
  }
  fill(builder, 0, *sum);
}

}  // namespace

/// The sizes of groups are values, and the shapes of kernels are not: every row is multiplied with the matrices of all
/// groups, and its own product is chosen. What is behind the last group is zero.
Status grouped_product(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &weight = tensor(args[1]), &ends = tensor(args[2]);
  const size_t rank = weight.size.size();
  if (!is_none(args[3]) || x.dtype != weight.dtype || builder.result().dtype != x.dtype) {
    return refuse("a product of groups with a bias, or as another type");
  }
  SPYRE_TRY(check(x, weight, 2, rank == 3 ? 3 : 2));
  if (!is_float(x.dtype) || element_count(x) == 0 || element_count(weight) == 0 || ends.size.size() != 1 ||
      !is_integer(ends.dtype) || x.size[1] != weight.size[rank - 2]) {
    return refuse("a product of groups that are not rows");
  }
  if (rank == 2) {
    grouped_sums(builder, x, weight, ends);
    return Status();
  }
  const int64_t groups = weight.size[0], length = x.size[0];
  const int64_t fitting = kProductsAtOnce / (groups * weight.size[2]);
  const int64_t step = std::max<int64_t>(64, std::min(kRowsAtOnce, fitting));
  for (int64_t first = 0; first < length; first += step) {
    const int64_t count = std::min(step, length - first);
    const TensorView rows = expand(builder, narrow(x, 0, first, count), {groups, count, x.size[1]});
    const TensorView mine = unsqueeze(members(builder, ends, first, count), 2);
    const TensorView own = compute(builder, where(mine, product(builder, rows, weight, x.dtype), 0.0));
    fold_into(builder, narrow(builder.result(), 0, first, count), "sum", own, {true, false, false},
              /*keepdim=*/false);
  }
  return Status();
}

}  // namespace spyre::forms
