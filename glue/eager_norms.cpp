// Operators of several steps: softmax and norms. One graph each, so that what is between the steps never
// leaves the card.

#include "glue/eager_recipes.h"

namespace spyre::glue {
namespace {

/// The dimensions of a tensor, some of which are folded and kept as size 1.
struct Rows {
  std::vector<int64_t> size, kept, folded_sizes;
  std::vector<bool> folded;
  int64_t count = 1;

  Rows(const at::Tensor& tensor, std::vector<bool> which)
      : size(tensor.sizes().vec()), kept(size), folded(std::move(which)) {
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
  NodeBuilder fold(GraphBuilder& graph, BufferId target) const {
    return graph.node(target, kept, folded_sizes);
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
  const double factor = 1.0 / static_cast<double>(rows.count);
  if (rows.folded_sizes.size() == 1) {
    return node.reduce("mean", {value}, {{"scaling_factor", factor}});
  }
  const Value sum = node.reduce("sum", {value});
  return node.op("mul", {sum, node.constant(factor, node.dtype(sum))});
}

Result<HostType> float_type(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) {
    return refuse("a norm of integers");
  }
  return arithmetic_type(tensor.scalar_type());
}

/// The tensor as another dtype: a copy that several steps read, or itself.
BufferId as_buffer(GraphBuilder& graph, const at::Tensor& tensor, HostType type) {
  const BufferId input = graph.input(tensor);
  if (graph.buffer(input).dtype == type) {
    return input;
  }
  const BufferId cast = graph.local(tensor.sizes().vec(), type);
  NodeBuilder node = graph.node(cast, tensor.sizes().vec());
  node.store(node.load(input));
  return cast;
}

/// What PyTorch adds when nobody says how much: the distance from 1 to the next number.
double epsilon_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kHalf:
      return 0x1p-10;
    case c10::kBFloat16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

}  // namespace

Status softmax(GraphBuilder& graph, Arguments args, std::string_view op) {
  const at::Tensor& x = args[0].toTensor();
  if (x.dim() == 0) {
    return refuse("a softmax of one number");
  }
  SPYRE_TRY(float_type(x));
  const HostType type = graph.buffer(graph.result()).dtype;
  const Rows rows(x, dims_of(args[1], static_cast<size_t>(x.dim())));
  const BufferId input = as_buffer(graph, x, type);

  const BufferId highest = graph.local(rows.kept, type);
  NodeBuilder find = rows.fold(graph, highest);
  find.store(find.reduce("max", {find.load(input, rows.inside(find))}));

  const BufferId shifted = graph.local(rows.size, type);
  NodeBuilder shift = graph.node(shifted, rows.size);
  const Value below = shift.op("sub", {shift.load(input), shift.load(highest)});
  const bool logarithm = op == "log_softmax";
  shift.store(logarithm ? below : shift.op("exp", {below}));

  const BufferId total = graph.local(rows.kept, type);
  NodeBuilder add = rows.fold(graph, total);
  const Value term = add.load(shifted, rows.inside(add));
  add.store(add.reduce("sum", {logarithm ? add.op("exp", {term}) : term}));

  NodeBuilder last = graph.node(graph.result(), rows.size);
  const Value own = last.load(shifted);
  last.store(logarithm ? last.op("sub", {own, last.op("log", {last.load(total)})})
                       : last.op("truediv", {own, last.load(total)}));
  return Status();
}

Status softmax_backward(GraphBuilder& graph, Arguments args, std::string_view op) {
  const at::Tensor &gradient = args[0].toTensor(), &y = args[1].toTensor();
  if (y.dim() == 0) {
    return refuse("a softmax of one number");
  }
  SPYRE_ASSIGN_OR_RETURN(const HostType type, float_type(y));
  const bool logarithm = op == "log_softmax";
  const Rows rows(y, dims_of(args[2], static_cast<size_t>(y.dim())));
  const BufferId total = graph.local(rows.kept, type);
  NodeBuilder add = rows.fold(graph, total);
  const Value g = add.load(graph.input(gradient), rows.inside(add));
  add.store(
      add.reduce("sum", {logarithm ? g : add.op("mul", {g, add.load(graph.input(y), rows.inside(add))})}));

  NodeBuilder last = graph.node(graph.result(), rows.size);
  const Value slope = last.load(graph.input(gradient)), out = last.load(graph.input(y)),
              sum = last.load(total);
  last.store(logarithm ? last.op("sub", {slope, last.op("mul", {last.op("exp", {out}), sum})})
                       : last.op("mul", {out, last.op("sub", {slope, sum})}));
  return Status();
}

namespace {

constexpr HostType kWide = HostType::kFloat32;

/// The rows that a norm of the last `inner` dimensions takes together.
Rows rows_of(const at::Tensor& x, size_t inner) {
  std::vector<bool> folded(static_cast<size_t>(x.dim()), false);
  std::fill(folded.end() - static_cast<std::ptrdiff_t>(inner), folded.end(), true);
  return Rows(x, std::move(folded));
}

/// Norms take their statistics in float32, as decompositions.py does: in 16 bits means and squares of ordinary rows
/// cancel, overflow or vanish.
struct Norm {
  GraphBuilder& graph;
  Rows rows;
  BufferId mean_of_each(BufferId of) const {
    const BufferId mean = graph.local(rows.kept, kWide);
    NodeBuilder node = rows.fold(graph, mean);
    node.store(mean_of(node, node.load(of, rows.inside(node)), rows));
    return mean;
  }
  BufferId less(BufferId of, BufferId each) const {
    const BufferId rest = graph.local(rows.size, kWide);
    NodeBuilder node = graph.node(rest, rows.size);
    node.store(node.op("sub", {node.load(of), node.load(each)}));
    return rest;
  }
  /// 1 / sqrt(mean square + eps).
  BufferId scale_of_each(BufferId of, double eps) const {
    const BufferId scale = graph.local(rows.kept, kWide);
    NodeBuilder node = rows.fold(graph, scale);
    const Value part = node.load(of, rows.inside(node));
    const Value square = mean_of(node, node.op("mul", {part, part}), rows);
    node.store(node.op("rsqrt", {node.op("add", {square, node.constant(eps, kWide)})}));
    return scale;
  }
  /// The result, and a statistic, as the dtypes that the caller sees.
  void store(NodeBuilder& node, Value value) const {
    node.store(node.as(value, graph.buffer(graph.result()).dtype));
  }
  void store_each(size_t result, BufferId each) const {
    NodeBuilder node = graph.node(graph.result(result), rows.kept);
    node.store(node.as(node.load(each), graph.buffer(graph.result(result)).dtype));
  }
};

bool is_given(const c10::IValue& argument) {
  return !argument.isNone() && argument.toTensor().defined();
}

/// By the card's own operations. They take a mean off again: what rounding the first one left.
BufferId norm_of_rows(const Norm& norm, BufferId centred, Arguments args) {
  GraphBuilder& graph = norm.graph;
  const Rows& rows = norm.rows;
  const BufferId moments = graph.local(rows.kept, kWide), scale = graph.local(rows.kept, kWide);
  NodeBuilder measure = rows.fold(graph, moments);
  measure.store(measure.reduce("exx2", {measure.load(centred, rows.inside(measure))},
                               {{"exx2scale", 1.0 / static_cast<double>(rows.count)}, {"useZeroMean", 0.0}}));
  NodeBuilder factor = graph.node(scale, rows.kept);
  factor.store(factor.op("layernormscale", {factor.load(moments)}, {{"eps", args[4].toDouble()}}));

  NodeBuilder last = graph.node(graph.result(), rows.size);
  const auto affine = [&](const c10::IValue& argument, double otherwise) {
    return is_given(argument) ? operand(graph, last, argument, kWide) : last.constant(otherwise, kWide);
  };
  const Value x = last.load(centred), moment = last.load(moments), each = last.load(scale);
  const Value weight = affine(args[2], 1);
  norm.store(last, last.op("layernormnorm", {x, moment, each, weight, affine(args[3], 0)}));
  return scale;
}

BufferId norm_in_steps(const Norm& norm, BufferId centred, Arguments args) {
  centred = norm.less(centred, norm.mean_of_each(centred));
  const BufferId scale = norm.scale_of_each(centred, args[4].toDouble());
  NodeBuilder last = norm.graph.node(norm.graph.result(), norm.rows.size);
  Value value = last.op("mul", {last.load(centred), last.load(scale)});
  for (const auto& [argument, step] : {std::pair(size_t{2}, "mul"), std::pair(size_t{3}, "add")}) {
    if (is_given(args[argument])) {
      value = last.op(step, {value, operand(norm.graph, last, args[argument], kWide)});
    }
  }
  norm.store(last, value);
  return scale;
}

}  // namespace

Status layer_norm(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor& x = args[0].toTensor();
  SPYRE_TRY(float_type(x));
  for (const size_t affine : {size_t{2}, size_t{3}}) {
    if (is_given(args[affine])) {
      SPYRE_TRY(float_type(args[affine].toTensor()));
    }
  }
  const size_t inner = args[1].toIntVector().size();
  const Norm norm{graph, rows_of(x, inner)};
  const BufferId input = as_buffer(graph, x, kWide), mean = norm.mean_of_each(input);
  const BufferId centred = norm.less(input, mean);
  const bool has_rows = inner == 1 && norm.rows.count > 1;
  const BufferId scale = has_rows ? norm_of_rows(norm, centred, args) : norm_in_steps(norm, centred, args);
  norm.store_each(1, mean);
  norm.store_each(2, scale);
  return Status();
}

Status rms_norm(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor& x = args[0].toTensor();
  SPYRE_TRY(float_type(x));
  const double eps = args[3].isNone() ? epsilon_of(x.scalar_type()) : args[3].toDouble();
  const Norm norm{graph, rows_of(x, args[1].toIntVector().size())};
  const BufferId input = as_buffer(graph, x, kWide), scale = norm.scale_of_each(input, eps);

  NodeBuilder last = graph.node(graph.result(), norm.rows.size);
  Value value = last.op("mul", {last.load(input), last.load(scale)});
  if (is_given(args[2])) {
    SPYRE_TRY(float_type(args[2].toTensor()));
    value = last.op("mul", {value, operand(graph, last, args[2], kWide)});
  }
  norm.store(last, value);
  norm.store_each(1, scale);
  return Status();
}

}  // namespace spyre::glue
