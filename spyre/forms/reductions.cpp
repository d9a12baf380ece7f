// Folds over some dimensions of one tensor.

#include "spyre/forms/forms.h"
#include "spyre/forms/steps.h"

namespace spyre::forms {
namespace {

/// The shape of a fold: which loops the result has, and where the input is read.
///
///     x [4, 5, 6] over dim 1     keepdim: loops 4, 1, 6; reduced 5     else: loops 4, 6; reduced 5
class Fold {
 public:
  Fold(const TensorView& x, std::vector<bool> folded, bool keepdim)
      : folded_(std::move(folded)), keepdim_(keepdim) {
    for (size_t d = 0; d < folded_.size(); ++d) {
      const int64_t size = x.size[d];
      if (folded_[d]) {
        reduced.push_back(size);
        count *= size;
      }
      if (!folded_[d] || keepdim_) {
        extents.push_back(folded_[d] ? 1 : size);
      }
    }
  }

  std::vector<Expr> position(const NodeBuilder& node) const {
    std::vector<Expr> at;
    size_t output = 0, folded = 0;
    for (const bool is_folded : folded_) {
      if (is_folded) {
        at.push_back(node.loop(node.output_loops() + folded++));
        output += keepdim_ ? 1 : 0;
      } else {
        at.push_back(node.loop(output++));
      }
    }
    return at;
  }

  const std::vector<bool>& folded() const { return folded_; }

  std::vector<int64_t> extents, reduced;
  int64_t count = 1;  ///< elements folded into one

 private:
  std::vector<bool> folded_;
  bool keepdim_;
};

constexpr int64_t kExactSum = 1 << 16;  // so many integers are added exactly at once

/// The sum along one dimension, which becomes one of size 1.
TensorView sum_of_integers(Builder& builder, const TensorView& x, size_t dim) {
  const size_t rank = x.size.size();
  const int64_t n = x.size[dim], blocks = n / kExactSum;
  const auto along = [&](const TensorView& part) {
    return fold(builder, "sum", part, only(rank, dim), true);
  };
  if (n <= kExactSum) {
    return along(x);
  }
  TensorView whole = unsqueeze(narrow(x, dim, 0, blocks * kExactSum), dim + 1);
  whole.size[dim] = blocks;
  whole.size[dim + 1] = kExactSum;
  whole.stride[dim + 1] = x.stride[dim];
  whole.stride[dim] = x.stride[dim] * kExactSum;
  const TensorView sums = along(fold(builder, "sum", whole, only(rank + 1, dim + 1), /*keepdim=*/false));
  if (n % kExactSum == 0) {
    return sums;
  }
  const TensorView rest = narrow(x, dim, blocks * kExactSum, n % kExactSum);
  return compute(builder, Element(sums) + sum_of_integers(builder, rest, dim));
}

/// Dimension by dimension: each sum is an integer again.
void sum_many_integers(Builder& builder, const TensorView& target, const TensorView& x, const Fold& fold) {
  TensorView sum = x;
  for (size_t dim = x.size.size(); dim-- > 0;) {
    if (fold.folded()[dim] && sum.size[dim] > 1) {
      sum = sum_of_integers(builder, sum, dim);
    }
  }
  fill(builder, target, reshape(builder, sum, target.size));
}

Status fold_into(Builder& builder, const TensorView& target, const TensorView& x, const Fold& fold,
                 std::string_view op) {
  // Eight bits are stored, not computed with: whether all of them are set is asked of 16.
  const bool stored = op == "all" && is_float(x.dtype) && !arithmetic_type(x.dtype).ok();
  SPYRE_ASSIGN_OR_RETURN(const HostType from, arithmetic_type(stored ? HostType::kFloat16 : x.dtype));
  const bool truth = op == "any" || op == "all";
  if (from == HostType::kBool && fold.count > (1 << 24)) {
    return refuse("counting beyond 2^24");
  }
  if (element_count(x) == 0) {
    return refuse("folding nothing");
  }
  // An empty list of dimensions means all of them, but for a few overloads none.
  if (target.size != fold.extents) {
    return refuse("folding no dimension");
  }
  if (op == "sum" && is_integer(from) && is_integer(target.dtype) && fold.count > kExactSum) {
    sum_many_integers(builder, target, x, fold);
    return Status();
  }
  NodeBuilder node = builder.node(target, fold.extents, fold.reduced);
  Value value = node.load(x, fold.position(node));
  const HostType result = target.dtype;
  // Masks of 32-bit values lie in an order that only 32 bits fold.
  const std::optional<DeviceLayout> layout = builder.layout(x);
  if (truth && layout && layout->element_arrangement == ElementArrangement::FP32_TO_DL16) {
    value = node.as(value, HostType::kFloat32);
  } else if (stored) {
    value = node.as(value, from);
  } else if (!truth) {
    // Truth values are counted in 32-bit floats; integers the compiler folds itself.
    value = node.as(value, is_integer(result) && !is_integer(from) ? HostType::kFloat32 : result);
  }
  if (op == "mean") {
    node.store(node.reduce(op, {value}, {{"scaling_factor", 1.0 / static_cast<double>(fold.count)}}));
  } else {
    node.store(node.reduce(op, {value}));
  }
  return Status();
}

Status position(Builder& builder, size_t result, const TensorView& x, const Fold& fold, std::string_view op) {
  SPYRE_TRY(arithmetic_type(x.dtype));
  if (fold.count > (1 << 24)) {
    return refuse("positions beyond 2^24");
  }
  NodeBuilder node = builder.node(builder.result(result), fold.extents, fold.reduced);
  node.store(node.reduce(op, {node.load(x, fold.position(node))}));
  return Status();
}

/// The position of the extreme in a flattened tensor: that in each row, and of the rows that reach the
/// extreme of all the first. Positions below 2^24 are exact in 32-bit floats.
Status position_of_all(Builder& builder, const TensorView& x, std::string_view op) {
  if (element_count(x) > (1 << 24)) {
    return refuse("positions beyond 2^24");
  }
  SPYRE_ASSIGN_OR_RETURN(const HostType type, arithmetic_type(x.dtype));
  const std::string_view extreme = op == "argmax" ? "max" : "min";
  const std::vector<int64_t> rows(x.size.begin(), x.size.end() - 1);
  const int64_t columns = x.size.back();
  const auto along_rows = [&](TensorView target, std::string_view kind) {
    NodeBuilder node = builder.node(target, rows, {columns});
    node.store(node.reduce(kind, {node.load(x, node.loops(0, rows.size() + 1))}));
  };
  const TensorView best = builder.local(rows, type), place = builder.local(rows, HostType::kInt64);
  const TensorView best_of_all = builder.local({}, type);
  along_rows(best, extreme);
  along_rows(place, op);
  NodeBuilder over_rows = builder.node(best_of_all, {}, rows);
  over_rows.store(over_rows.reduce(extreme, {over_rows.load(best, over_rows.loops(0, rows.size()))}));

  NodeBuilder node = builder.node(builder.result(), builder.result().size, rows);
  const std::vector<Expr> row = node.loops(node.output_loops(), rows.size());
  const Value mine = node.load(best, row);
  Value met = node.op("eq", {mine, node.load(best_of_all, {})});
  if (type == HostType::kFloat32) {  // what is not a number is the extreme, and equals nothing
    met = node.op("logical_or", {met, node.op("ne", {mine, mine})});
  }
  Expr start;
  for (size_t i = 0; i < rows.size(); ++i) {
    start = rows[i] * start + columns * row[i];
  }
  const Value there = node.as(node.load(place, row), HostType::kFloat32);
  const Value position = node.op("add", {node.index(start, HostType::kFloat32), there});
  const Value nowhere = node.constant(static_cast<double>(element_count(x)), HostType::kFloat32);
  const Value first = node.reduce("min", {node.op("where", {met, position, nowhere})});
  node.store(node.as(first, HostType::kInt64));
  return Status();
}

}  // namespace

TensorView fold(Builder& builder, std::string_view op, const TensorView& x, const std::vector<bool>& folded,
                bool keepdim) {
  const Fold shape(x, folded, keepdim);
  const TensorView target =
      builder.local(shape.extents, result_type(body_op("reduce." + std::string(op)), {x.dtype}));
  if (const Status done = fold_into(builder, target, x, shape, op); !done.ok()) {
    builder.fail(done.error().message);
  }
  return target;
}

void fold_into(Builder& builder, const TensorView& target, std::string_view op, const TensorView& x,
               const std::vector<bool>& folded, bool keepdim) {
  const Status done = fold_into(builder, target, x, Fold(x, folded, keepdim), op);
  if (!done.ok()) {
    builder.fail(done.error().message);
  }
}

void fold_result(Builder& builder, size_t result, std::string_view op, const TensorView& x,
                 const std::vector<bool>& folded, bool keepdim) {
  fold_into(builder, builder.result(result), op, x, folded, keepdim);
}

Status reduce_dims(Builder& builder, Arguments args, std::string_view op) {
  const TensorView& x = tensor(args[0]);
  SPYRE_ASSIGN_OR_RETURN(std::vector<bool> folded, dimensions(args[1], x.size.size()));
  return fold_into(builder, builder.result(), x, Fold(x, std::move(folded), flag(args[2])), op);
}

Status reduce_all(Builder& builder, Arguments args, std::string_view op) {
  const TensorView& x = tensor(args[0]);
  return fold_into(builder, builder.result(), x, Fold(x, std::vector<bool>(x.size.size(), true), false), op);
}

Status arg_reduce(Builder& builder, Arguments args, std::string_view op) {
  const TensorView& x = tensor(args[0]);
  if (is_none(args[1]) && x.size.size() > 1) {
    return position_of_all(builder, x, op);
  }
  SPYRE_ASSIGN_OR_RETURN(std::vector<bool> folded, dimensions(args[1], x.size.size()));
  return position(builder, 0, x, Fold(x, std::move(folded), flag(args[2])), op);
}

Status extreme_and_position(Builder& builder, Arguments args, std::string_view op) {
  const TensorView& x = tensor(args[0]);
  SPYRE_ASSIGN_OR_RETURN(std::vector<bool> folded, dimensions(args[1], x.size.size()));
  const Fold shape(x, std::move(folded), flag(args[2]));
  SPYRE_TRY(fold_into(builder, builder.result(), x, shape, op));
  return position(builder, 1, x, shape, op == "max" ? "argmax" : "argmin");
}

}  // namespace spyre::forms
