// Operators of several steps: softmax and norms. What is between the steps never leaves the card.

#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

/// The dimensions of a tensor, some of which are folded and kept as size 1.
struct Rows {
  std::vector<int64_t> size, kept, folded_sizes;
  std::vector<bool> folded;
  int64_t count = 1;

  Rows(const TensorView& x, std::vector<bool> which) : size(x.size), kept(size), folded(std::move(which)) {
    for (size_t d = 0; d < size.size(); ++d) {
      if (!folded[d]) {
        continue;
      }
      folded_sizes.push_back(size[d]);
      count *= size[d];
      kept[d] = 1;
    }
  }

  /// A node that folds; its loops are `kept`, then the folded ones.
  NodeBuilder fold(Builder& builder, TensorView target) const {
    return builder.node(target, kept, folded_sizes);
  }

  /// Where such a node reads a whole row.
  std::vector<Expr> inside(const NodeBuilder& node) const {
    std::vector<Expr> at;
    size_t reduced = size.size();
    for (size_t d = 0; d < size.size(); ++d) {
      at.push_back(folded[d] ? node.loop(reduced++) : node.loop(d));
    }
    return at;
  }
};

Value mean_of(NodeBuilder& node, Value value, const Rows& rows) {
  return node.reduce("mean", {value}, {{"scaling_factor", 1.0 / static_cast<double>(rows.count)}});
}

Result<HostType> float_type(const TensorView& x) {
  if (!is_float(x.dtype)) {
    return refuse("a norm of integers");
  }
  return arithmetic_type(x.dtype);
}

/// The tensor as another dtype: a copy that several steps read, or itself.
TensorView as_buffer(Builder& builder, const TensorView& x, HostType type) {
  if (x.dtype == type) {
    return x;
  }
  const TensorView cast = builder.local(x.size, type);
  NodeBuilder node = builder.node(cast, x.size);
  node.store(node.load(x));
  return cast;
}

/// What PyTorch adds when nobody says how much: the distance from 1 to the next number.
double epsilon_of(HostType dtype) {
  switch (dtype) {
    case HostType::kFloat16:
      return 0x1p-10;
    case HostType::kBFloat16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

/// A number is a row of one.
TensorView as_row(const TensorView& x) {
  return x.size.empty() ? unsqueeze(x, 0) : x;
}

}  // namespace

Status softmax(Builder& builder, Arguments args, std::string_view op) {
  const TensorView x = as_row(tensor(args[0]));
  SPYRE_TRY(float_type(x));
  const HostType type = builder.result().dtype;
  SPYRE_ASSIGN_OR_RETURN(std::vector<bool> folded, dimensions(args[1], x.size.size()));
  const Rows rows(x, std::move(folded));
  const TensorView input = as_buffer(builder, x, type);

  const TensorView highest = builder.local(rows.kept, type);
  NodeBuilder find = rows.fold(builder, highest);
  find.store(find.reduce("max", {find.load(input, rows.inside(find))}));

  const TensorView shifted = builder.local(rows.size, type);
  NodeBuilder shift = builder.node(shifted, rows.size);
  const Value below = shift.op("sub", {shift.load(input), shift.load(highest)});
  const bool logarithm = op == "log_softmax";
  shift.store(logarithm ? below : shift.op("exp", {below}));

  const TensorView total = builder.local(rows.kept, type);
  NodeBuilder add = rows.fold(builder, total);
  const Value term = add.load(shifted, rows.inside(add));
  add.store(add.reduce("sum", {logarithm ? add.op("exp", {term}) : term}));

  NodeBuilder last = builder.node(as_row(builder.result()), rows.size);
  const Value own = last.load(shifted);
  last.store(logarithm ? last.op("sub", {own, last.op("log", {last.load(total)})})
                       : last.op("truediv", {own, last.load(total)}));
  return Status();
}

Status softmax_backward(Builder& builder, Arguments args, std::string_view op) {
  const TensorView gradient = as_row(tensor(args[0])), y = as_row(tensor(args[1]));
  SPYRE_ASSIGN_OR_RETURN(const HostType type, float_type(y));
  const bool logarithm = op == "log_softmax";
  SPYRE_ASSIGN_OR_RETURN(std::vector<bool> folded, dimensions(args[2], y.size.size()));
  const Rows rows(y, std::move(folded));
  const TensorView total = builder.local(rows.kept, type);
  NodeBuilder add = rows.fold(builder, total);
  const Value g = add.load(gradient, rows.inside(add));
  add.store(add.reduce("sum", {logarithm ? g : add.op("mul", {g, add.load(y, rows.inside(add))})}));

  NodeBuilder last = builder.node(as_row(builder.result()), rows.size);
  const Value slope = last.load(gradient), out = last.load(y), sum = last.load(total);
  last.store(logarithm ? last.op("sub", {slope, last.op("mul", {last.op("exp", {out}), sum})})
                       : last.op("mul", {out, last.op("sub", {slope, sum})}));
  return Status();
}

namespace {

constexpr HostType kWide = HostType::kFloat32;

/// The rows that a norm of the last `inner` dimensions takes together.
Result<Rows> rows_of(const TensorView& x, size_t inner) {
  if (inner == 0 || inner > x.size.size()) {
    return refuse("a norm of more dimensions than the input has");
  }
  std::vector<bool> folded(x.size.size(), false);
  std::fill(folded.end() - static_cast<std::ptrdiff_t>(inner), folded.end(), true);
  return Rows(x, std::move(folded));
}

/// Norms take their statistics in float32: in 16 bits means and squares of ordinary rows
/// cancel, overflow or vanish.
struct Norm {
  Builder& builder;
  Rows rows;
  TensorView mean_of_each(TensorView of) const {
    const TensorView mean = builder.local(rows.kept, kWide);
    NodeBuilder node = rows.fold(builder, mean);
    node.store(mean_of(node, node.load(of, rows.inside(node)), rows));
    return mean;
  }
  TensorView less(TensorView of, TensorView each) const {
    const TensorView rest = builder.local(rows.size, kWide);
    NodeBuilder node = builder.node(rest, rows.size);
    node.store(node.op("sub", {node.load(of), node.load(each)}));
    return rest;
  }
  /// 1 / sqrt(mean square + eps).
  TensorView scale_of_each(TensorView of, double eps) const {
    const TensorView scale = builder.local(rows.kept, kWide);
    NodeBuilder node = rows.fold(builder, scale);
    const Value part = node.load(of, rows.inside(node));
    const Value square = mean_of(node, node.op("mul", {part, part}), rows);
    node.store(node.op("rsqrt", {node.op("add", {square, node.constant(eps, kWide)})}));
    return scale;
  }
  /// The result, and a statistic, as the dtypes that the caller sees.
  void store(NodeBuilder& node, Value value) const { node.store(node.as(value, builder.result().dtype)); }
  void store_each(size_t result, TensorView each) const {
    NodeBuilder node = builder.node(builder.result(result), rows.kept);
    node.store(node.as(node.load(each), builder.result(result).dtype));
  }
};

/// By the card's own operations. They take a mean off again: what rounding the first one left.
TensorView norm_of_rows(const Norm& norm, TensorView centred, Arguments args) {
  Builder& builder = norm.builder;
  const Rows& rows = norm.rows;
  const TensorView moments = builder.local(rows.kept, kWide), scale = builder.local(rows.kept, kWide);
  NodeBuilder measure = rows.fold(builder, moments);
  measure.store(measure.reduce("exx2", {measure.load(centred, rows.inside(measure))},
                               {{"exx2scale", 1.0 / static_cast<double>(rows.count)}, {"useZeroMean", 0.0}}));
  NodeBuilder factor = builder.node(scale, rows.kept);
  factor.store(factor.op("layernormscale", {factor.load(moments)}, {{"eps", number(args[4])}}));

  NodeBuilder last = builder.node(builder.result(), rows.size);
  const auto affine = [&](const Argument& argument, double otherwise) {
    return !is_none(argument) ? operand(last, argument, kWide) : last.constant(otherwise, kWide);
  };
  const Value x = last.load(centred), moment = last.load(moments), each = last.load(scale);
  const Value weight = affine(args[2], 1);
  norm.store(last, last.op("layernormnorm", {x, moment, each, weight, affine(args[3], 0)}));
  return scale;
}

TensorView norm_in_steps(const Norm& norm, TensorView centred, Arguments args) {
  centred = norm.less(centred, norm.mean_of_each(centred));
  const TensorView scale = norm.scale_of_each(centred, number(args[4]));
  NodeBuilder last = norm.builder.node(norm.builder.result(), norm.rows.size);
  Value value = last.op("mul", {last.load(centred), last.load(scale)});
  for (const auto& [argument, step] : {std::pair(size_t{2}, "mul"), std::pair(size_t{3}, "add")}) {
    if (!is_none(args[argument])) {
      value = last.op(step, {value, operand(last, args[argument], kWide)});
    }
  }
  norm.store(last, value);
  return scale;
}

}  // namespace

Status layer_norm(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(float_type(x));
  for (const size_t affine : {size_t{2}, size_t{3}}) {
    if (!is_none(args[affine])) {
      SPYRE_TRY(float_type(tensor(args[affine])));
    }
  }
  const size_t inner = integers(args[1]).size();
  SPYRE_ASSIGN_OR_RETURN(Rows rows, rows_of(x, inner));
  const Norm norm{builder, std::move(rows)};
  const TensorView input = as_buffer(builder, x, kWide), mean = norm.mean_of_each(input);
  const TensorView centred = norm.less(input, mean);
  const bool has_rows = inner == 1 && norm.rows.count > 1;
  const TensorView scale = has_rows ? norm_of_rows(norm, centred, args) : norm_in_steps(norm, centred, args);
  norm.store_each(1, mean);
  norm.store_each(2, scale);
  return Status();
}

Status rms_norm(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(float_type(x));
  const double eps = is_none(args[3]) ? epsilon_of(x.dtype) : number(args[3]);
  SPYRE_ASSIGN_OR_RETURN(Rows rows, rows_of(x, integers(args[1]).size()));
  const Norm norm{builder, std::move(rows)};
  const TensorView input = as_buffer(builder, x, kWide), scale = norm.scale_of_each(input, eps);

  NodeBuilder last = builder.node(builder.result(), norm.rows.size);
  Value value = last.op("mul", {last.load(input), last.load(scale)});
  if (!is_none(args[2])) {
    SPYRE_TRY(float_type(tensor(args[2])));
    value = last.op("mul", {value, operand(last, args[2], kWide)});
  }
  norm.store(last, value);
  norm.store_each(1, scale);
  return Status();
}

}  // namespace spyre::forms
