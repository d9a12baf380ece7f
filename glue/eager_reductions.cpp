// Folds over some dimensions of one tensor.

#include "glue/eager_recipes.h"

namespace spyre::glue {
namespace {

/// The shape of a fold: which loops the result has, and where the input is read.
///
///     x [4, 5, 6] over dim 1     keepdim: loops 4, 1, 6; reduced 5     else: loops 4, 6; reduced 5
class Fold {
 public:
  Fold(const at::Tensor& tensor, std::vector<bool> folded, bool keepdim)
      : folded_(std::move(folded)), keepdim_(keepdim) {
    for (size_t d = 0; d < folded_.size(); ++d) {
      const int64_t size = tensor.size(static_cast<int64_t>(d));
      if (folded_[d]) {
        reduced.push_back(size);
        count *= size;
        long_loops += size > 1 ? 1 : 0;
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

  std::vector<int64_t> extents, reduced;
  int64_t count = 1;   ///< elements folded into one
  int long_loops = 0;  ///< reduced loops of more than one iteration

 private:
  std::vector<bool> folded_;
  bool keepdim_;
};

Status fold(GraphBuilder& graph, const at::Tensor& tensor, const Fold& fold, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType from, arithmetic_type(tensor.scalar_type()));
  const bool truth = op == "any" || op == "all";
  if (from == HostType::kBool && fold.count > (1 << 24)) {
    return refuse("counting beyond 2^24");
  }
  if (tensor.numel() == 0) {
    return refuse("folding nothing");
  }
  // An empty list of dimensions means all of them, but for a few overloads none.
  if (graph.result_size() != fold.extents) {
    return refuse("folding no dimension");
  }
  NodeBuilder node = graph.node(graph.result(), fold.extents, fold.reduced);
  Value x = node.load(graph.input(tensor), fold.position(node));
  const HostType result = graph.buffer(graph.result()).dtype;
  // Masks of 32-bit values lie in an order that only 32 bits fold.
  const auto& layout = graph.buffer(graph.input(tensor)).layout;
  if (truth && layout && layout->element_arrangement == ElementArrangement::FP32_TO_DL16) {
    x = node.as(x, HostType::kFloat32);
  } else if (!truth) {
    // Truth values are counted in 32-bit floats; integers the compiler folds itself.
    x = node.as(x, is_integer(result) && !is_integer(from) ? HostType::kFloat32 : result);
  }
  if (op != "mean") {
    node.store(node.reduce(op, {x}));
    return Status();
  }
  const double factor = 1.0 / static_cast<double>(fold.count);
  if (fold.long_loops == 1) {
    node.store(node.reduce("mean", {x}, {{"scaling_factor", factor}}));
  } else {
    const Value sum = node.reduce("sum", {x});
    node.store(node.op("mul", {sum, node.constant(factor, node.dtype(sum))}));
  }
  return Status();
}

Status position(GraphBuilder& graph, size_t result, const at::Tensor& tensor, const Fold& fold,
                std::string_view op) {
  SPYRE_TRY(arithmetic_type(tensor.scalar_type()));
  if (fold.count > (1 << 24)) {
    return refuse("positions beyond 2^24");
  }
  NodeBuilder node = graph.node(graph.result(result), fold.extents, fold.reduced);
  node.store(node.reduce(op, {node.load(graph.input(tensor), fold.position(node))}));
  return Status();
}

/// The position of the extreme in a flattened tensor: that in each row, and of the rows that reach the
/// extreme of all the first. Positions below 2^24 are exact in 32-bit floats.
Status position_of_all(GraphBuilder& graph, const at::Tensor& tensor, std::string_view op) {
  if (tensor.numel() > (1 << 24)) {
    return refuse("positions beyond 2^24");
  }
  SPYRE_ASSIGN_OR_RETURN(const HostType type, arithmetic_type(tensor.scalar_type()));
  const std::string_view extreme = op == "argmax" ? "max" : "min";
  const std::vector<int64_t> rows(tensor.sizes().begin(), tensor.sizes().end() - 1);
  const int64_t columns = tensor.size(-1);
  const auto loops = [](const NodeBuilder& node, size_t first, size_t count) {
    std::vector<Expr> position;
    for (size_t i = first; i < first + count; ++i) {
      position.push_back(node.loop(i));
    }
    return position;
  };
  const auto along_rows = [&](BufferId target, std::string_view kind) {
    NodeBuilder node = graph.node(target, rows, {columns});
    node.store(node.reduce(kind, {node.load(graph.input(tensor), loops(node, 0, rows.size() + 1))}));
  };
  const BufferId best = graph.local(rows, type), place = graph.local(rows, HostType::kInt64);
  const BufferId best_of_all = graph.local({}, type);
  along_rows(best, extreme);
  along_rows(place, op);
  NodeBuilder over_rows = graph.node(best_of_all, {}, rows);
  over_rows.store(over_rows.reduce(extreme, {over_rows.load(best, loops(over_rows, 0, rows.size()))}));

  NodeBuilder node = graph.node(graph.result(), graph.result_size(), rows);
  const std::vector<Expr> row = loops(node, node.output_loops(), rows.size());
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
  const Value nowhere = node.constant(static_cast<double>(tensor.numel()), HostType::kFloat32);
  const Value first = node.reduce("min", {node.op("where", {met, position, nowhere})});
  node.store(node.as(first, HostType::kInt64));
  return Status();
}

}  // namespace

Status reduce_dims(GraphBuilder& graph, Arguments args, std::string_view op) {
  const at::Tensor& x = args[0].toTensor();
  return fold(graph, x, Fold(x, dims_of(args[1], static_cast<size_t>(x.dim())), args[2].toBool()), op);
}

Status reduce_all(GraphBuilder& graph, Arguments args, std::string_view op) {
  const at::Tensor& x = args[0].toTensor();
  return fold(graph, x, Fold(x, std::vector<bool>(static_cast<size_t>(x.dim()), true), false), op);
}

Status arg_reduce(GraphBuilder& graph, Arguments args, std::string_view op) {
  const at::Tensor& x = args[0].toTensor();
  if (args[1].isNone() && x.dim() > 1) {
    return position_of_all(graph, x, op);
  }
  return position(graph, 0, x, Fold(x, dims_of(args[1], static_cast<size_t>(x.dim())), args[2].toBool()), op);
}

Status extreme_and_position(GraphBuilder& graph, Arguments args, std::string_view op) {
  const at::Tensor& x = args[0].toTensor();
  const Fold shape(x, dims_of(args[1], static_cast<size_t>(x.dim())), args[2].toBool());
  SPYRE_TRY(fold(graph, x, shape, op));
  return position(graph, 1, x, shape, op == "max" ? "argmax" : "argmin");
}

}  // namespace spyre::glue
