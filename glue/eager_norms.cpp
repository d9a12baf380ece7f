// Operators of several steps: softmax and layer norm. One graph each, so that what is between the steps never
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

/// Rows of one dimension: the card's own norm, which takes moments and writes the normalized row.
void normalize_rows(GraphBuilder& graph, Arguments args, const Rows& rows, HostType type) {
  const BufferId input = graph.input(args[0].toTensor());
  const double share = 1.0 / static_cast<double>(rows.count);
  const BufferId moments = graph.local(rows.kept, type), factors = graph.local(rows.kept, type);
  NodeBuilder measure = rows.fold(graph, moments);
  measure.store(measure.reduce("exx2", {measure.load(input, rows.inside(measure))},
                               {{"exx2scale", share}, {"useZeroMean", 0.0}}));
  NodeBuilder scale = graph.node(factors, rows.kept);
  scale.store(scale.op("layernormscale", {scale.load(moments)}, {{"eps", args[4].toDouble()}}));

  NodeBuilder last = graph.node(graph.result(), rows.size);
  const auto affine = [&](const c10::IValue& argument, double otherwise) {
    const bool given = !argument.isNone() && argument.toTensor().defined();
    return given ? operand(graph, last, argument, type) : last.constant(otherwise, type);
  };
  const Value x = last.load(input), moment = last.load(moments), factor = last.load(factors);
  const Value weight = affine(args[2], 1);
  last.store(last.op("layernormnorm", {x, moment, factor, weight, affine(args[3], 0)}));
}

}  // namespace

Status layer_norm(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor& x = args[0].toTensor();
  SPYRE_ASSIGN_OR_RETURN(const HostType type, float_type(x));
  for (const size_t affine : {size_t{2}, size_t{3}}) {
    if (!args[affine].isNone() && args[affine].toTensor().defined()) {
      SPYRE_TRY(float_type(args[affine].toTensor()));
    }
  }
  const auto rank = static_cast<size_t>(x.dim()), inner = args[1].toIntVector().size();
  std::vector<bool> folded(rank, false);
  std::fill(folded.end() - static_cast<std::ptrdiff_t>(inner), folded.end(), true);
  const Rows rows(x, std::move(folded));
  const BufferId input = graph.input(x), mean = graph.result(1), scale = graph.result(2);
  if (graph.buffer(mean).dtype != type) {
    return refuse("statistics in another dtype than the input");
  }

  NodeBuilder average = rows.fold(graph, mean);
  average.store(mean_of(average, average.load(input, rows.inside(average)), rows));

  const BufferId centred = graph.local(rows.size, type);
  NodeBuilder centre = graph.node(centred, rows.size);
  centre.store(centre.op("sub", {centre.load(input), centre.load(mean)}));

  NodeBuilder spread = rows.fold(graph, scale);
  const Value distance = spread.load(centred, rows.inside(spread));
  const Value variance = mean_of(spread, spread.op("mul", {distance, distance}), rows);
  spread.store(spread.op("rsqrt", {spread.op("add", {variance, spread.constant(args[4].toDouble(), type)})}));

  if (inner == 1) {
    normalize_rows(graph, args, rows, type);
    return Status();
  }
  NodeBuilder last = graph.node(graph.result(), rows.size);
  Value value = last.op("mul", {last.load(centred), last.load(scale)});
  for (const auto& [argument, step] : {std::pair(size_t{2}, "mul"), std::pair(size_t{3}, "add")}) {
    if (!args[argument].isNone() && args[argument].toTensor().defined()) {
      value = last.op(step, {value, operand(graph, last, args[argument], type)});
    }
  }
  last.store(value);
  return Status();
}

Status rms_norm(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor& x = args[0].toTensor();
  SPYRE_ASSIGN_OR_RETURN(const HostType type, float_type(x));
  const auto rank = static_cast<size_t>(x.dim()), inner = args[1].toIntVector().size();
  std::vector<bool> folded(rank, false);
  std::fill(folded.end() - static_cast<std::ptrdiff_t>(inner), folded.end(), true);
  const Rows rows(x, std::move(folded));
  const BufferId input = graph.input(x), scale = graph.result(1);
  const double eps = args[3].isNone() ? epsilon_of(x.scalar_type()) : args[3].toDouble();

  NodeBuilder size = rows.fold(graph, scale);
  const Value part = size.load(input, rows.inside(size));
  const Value square = mean_of(size, size.op("mul", {part, part}), rows);
  size.store(size.op("rsqrt", {size.op("add", {square, size.constant(eps, type)})}));

  NodeBuilder last = graph.node(graph.result(), rows.size);
  Value value = last.op("mul", {last.load(input), last.load(scale)});
  if (!args[2].isNone() && args[2].toTensor().defined()) {
    SPYRE_TRY(float_type(args[2].toTensor()));
    value = last.op("mul", {value, operand(graph, last, args[2], type)});
  }
  last.store(value);
  return Status();
}

}  // namespace spyre::glue
