// Operators that move elements: copies, cat, gathers, and patterns made from positions.

#include <ATen/ExpandUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/where.h>

#include "glue/eager_recipes.h"

#include <algorithm>

namespace spyre::glue {

Status copy(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  SPYRE_TRY(arithmetic_type(args[0].toTensor().scalar_type()));
  NodeBuilder node = graph.node(graph.result(), graph.result_size());
  node.store(node.load(graph.input(args[0].toTensor())));
  return Status();
}

Status concatenate(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const auto rank = static_cast<int64_t>(graph.result_size().size());
  const int64_t wished = args[1].toInt();
  const auto dim = static_cast<size_t>(wished < 0 ? wished + rank : wished);
  int64_t start = 0;
  for (const at::Tensor& part : args[0].toTensorVector()) {
    if (part.numel() == 0) {
      continue;
    }
    SPYRE_TRY(arithmetic_type(part.scalar_type()));
    NodeBuilder node = graph.node(graph.result(), part.sizes().vec());
    std::vector<Expr> position;
    for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
      position.push_back(node.loop(d));
    }
    position[dim] = position[dim] + Expr::constant(start);
    node.store(node.load(graph.input(part)), position);
    start += part.size(static_cast<int64_t>(dim));
  }
  return Status();
}

Status stack(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const auto rank = static_cast<int64_t>(graph.result_size().size());
  const int64_t wished = args[1].toInt();
  const int64_t dim = wished < 0 ? wished + rank : wished;
  int64_t slot = 0;
  for (const at::Tensor& part : args[0].toTensorVector()) {
    SPYRE_TRY(arithmetic_type(part.scalar_type()));
    NodeBuilder node = graph.node(graph.result(), part.sizes().vec());
    std::vector<Expr> position;
    for (size_t d = 0; d < static_cast<size_t>(part.dim()); ++d) {
      position.push_back(node.loop(d));
    }
    position.insert(position.begin() + dim, Expr::constant(slot++));
    node.store(node.load(graph.input(part)), position);
  }
  return Status();
}

Status pad(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor& x = args[0].toTensor();
  SPYRE_ASSIGN_OR_RETURN(const HostType type, arithmetic_type(x.scalar_type()));
  const std::vector<int64_t> padding = args[1].toIntVector(), size = graph.result_size();
  const size_t rank = size.size();
  // By dimension where x begins in the result, how much of it there is, and where that begins in x.
  std::vector<int64_t> start(rank), kept = x.sizes().vec(), cut(rank);
  for (size_t i = 0; i < padding.size() / 2; ++i) {
    const size_t d = rank - 1 - i;
    const int64_t before = padding[2 * i], after = padding[2 * i + 1];
    start[d] = std::max<int64_t>(before, 0);
    cut[d] = std::max<int64_t>(-before, 0);
    kept[d] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
  }
  const auto at = [&](NodeBuilder& node, const std::vector<int64_t>& first) {
    std::vector<Expr> position;
    for (size_t d = 0; d < rank; ++d) {
      position.push_back(node.loop(d) + Expr::constant(first[d]));
    }
    return position;
  };
  if (c10::multiply_integers(kept) > 0) {
    NodeBuilder node = graph.node(graph.result(), kept);
    node.store(node.load(graph.input(x), at(node, cut)), at(node, start));
  }
  // What is before and behind x along one dimension, beside x along those before it, all along those behind it.
  for (size_t d = 0; d < rank; ++d) {
    for (const auto& [begin, end] :
         {std::pair<int64_t, int64_t>(0, start[d]), {start[d] + kept[d], size[d]}}) {
      std::vector<int64_t> first(rank), extent = size;
      std::copy_n(start.begin(), d, first.begin());
      std::copy_n(kept.begin(), d, extent.begin());
      first[d] = begin;
      extent[d] = end - begin;
      if (c10::multiply_integers(extent) > 0) {
        NodeBuilder node = graph.node(graph.result(), extent);
        node.store(node.constant(args[2].toScalar().toDouble(), type), at(node, first));
      }
    }
  }
  return Status();
}

Status triangle(GraphBuilder& graph, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, arithmetic_type(args[0].toTensor().scalar_type()));
  NodeBuilder node = graph.node(graph.result(), graph.result_size());
  const size_t rank = node.output_loops();
  // Below or on the diagonal: column - row - diagonal <= 0.
  const Expr distance = node.loop(rank - 1) + -1 * node.loop(rank - 2) + Expr::constant(-args[1].toInt());
  const Value inside =
      node.op(op, {node.index(distance, HostType::kFloat32), node.constant(0, HostType::kFloat32)});
  const Value x = node.load(graph.input(args[0].toTensor()));
  node.store(node.op("where", {inside, x, node.constant(0, type)}));
  return Status();
}

Status index_select(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor &table = args[0].toTensor(), &index = args[2].toTensor();
  SPYRE_TRY(arithmetic_type(table.scalar_type()));
  if (table.dim() == 0 || index.dim() != 1) {
    return refuse("an index without dimensions");
  }
  const auto dim = static_cast<size_t>(args[1].toInt() < 0 ? args[1].toInt() + table.dim() : args[1].toInt());
  NodeBuilder node = graph.node(graph.result(), graph.result_size());
  const Value row = node.load(graph.input(index), {node.loop(dim)});
  std::vector<Expr> position;
  for (size_t d = 0; d < node.output_loops(); ++d) {
    position.push_back(d == dim ? NodeBuilder::indirect(row) : node.loop(d));
  }
  node.store(node.load(graph.input(table), position));
  return Status();
}

namespace {

/// The positions in x[:, i], and the dimension they are along.
struct OneIndex {
  at::Tensor positions;
  size_t dim = 0;

  size_t rank() const { return static_cast<size_t>(positions.dim()); }

  /// x[:, i] is x with the dimension replaced by those of the index.
  std::vector<int64_t> selected(const at::Tensor& x) const {
    std::vector<int64_t> size = x.sizes().vec();
    const auto at = size.erase(size.begin() + static_cast<std::ptrdiff_t>(dim));
    size.insert(at, positions.sizes().begin(), positions.sizes().end());
    return size;
  }

  /// Where in x the current point of loops over `selected` lies.
  std::vector<Expr> place(NodeBuilder& node, Value position) const {
    std::vector<Expr> place;
    for (size_t d = 0; d < node.output_loops(); ++d) {
      if (d == dim) {
        place.push_back(NodeBuilder::indirect(position));
      }
      if (d < dim || d >= dim + rank()) {
        place.push_back(node.loop(d));
      }
    }
    if (dim == node.output_loops()) {
      place.push_back(NodeBuilder::indirect(position));
    }
    return place;
  }

  Value load(GraphBuilder& graph, NodeBuilder& node) const {
    std::vector<Expr> at;
    for (size_t d = 0; d < rank(); ++d) {
      at.push_back(node.loop(dim + d));
    }
    return node.load(graph.input(positions), at);
  }

  /// The same where negative positions count from the end.
  Value load_wrapped(GraphBuilder& graph, NodeBuilder& node, int64_t extent) const {
    const Value given = load(graph, node);
    const HostType type = node.dtype(given);
    const Value negative = node.op("lt", {given, node.constant(0, type)});
    const Value wrapped = node.op("add", {given, node.constant(static_cast<double>(extent), type)});
    return node.op("where", {negative, wrapped, given});
  }
};

Result<OneIndex> one_index(const c10::IValue& indices) {
  std::optional<OneIndex> found;
  size_t dim = 0;
  for (const std::optional<at::Tensor>& index : indices.toOptionalTensorList()) {
    if (index.has_value() && index->defined()) {
      if (found.has_value()) {
        return refuse("more than one index tensor");
      }
      if (!index->device().is_privateuseone()) {
        return refuse("an index that is not on the card");
      }
      if (index->scalar_type() != c10::kLong && index->scalar_type() != c10::kInt) {
        return refuse("a mask as index");
      }
      found = OneIndex{*index, dim};
    }
    ++dim;
  }
  if (!found.has_value()) {
    return refuse("no index tensor");
  }
  return *found;
}

/// What the result holds where nothing is written: x itself, unless the result is x.
void start_from(GraphBuilder& graph, const at::Tensor& x) {
  if (graph.input(x) == graph.result()) {
    return;
  }
  NodeBuilder node = graph.node(graph.result(), x.sizes().vec());
  node.store(node.load(graph.input(x)));
}

bool inside(const at::Tensor& positions, int64_t least, int64_t end) {
  const at::Tensor host = positions.to(c10::kCPU).to(c10::kLong).contiguous();
  const auto* first = host.const_data_ptr<int64_t>();
  return std::all_of(first, first + host.numel(), [&](int64_t p) { return p >= least && p < end; });
}

}  // namespace

bool positions_fit(Recipe recipe, Arguments args) {
  if (recipe == &index || recipe == &index_put) {
    const Result<OneIndex> found = one_index(args[1]);
    if (!found.ok()) {
      return true;  // refused already
    }
    const int64_t extent = args[0].toTensor().size(static_cast<int64_t>(found.value().dim));
    return inside(found.value().positions, -extent, extent);
  }
  if (recipe == &index_select || recipe == &index_copy) {
    return inside(args[2].toTensor(), 0, args[0].toTensor().size(args[1].toInt()));
  }
  return recipe != &embedding || inside(args[1].toTensor(), 0, args[0].toTensor().size(0));
}

std::optional<at::Tensor> index_by_mask(Recipe recipe, Arguments args) {
  if (recipe != &index || args.size() != 2) {  // not the form that writes into `out`
    return std::nullopt;
  }
  const auto indices = args[1].toOptionalTensorList();
  const at::Tensor mask =
      indices.size() == 1 ? std::optional<at::Tensor>(indices.get(0)).value_or(at::Tensor()) : at::Tensor();
  const at::Tensor& x = args[0].toTensor();
  if (!mask.defined() || !mask.device().is_privateuseone() || mask.scalar_type() != c10::kBool) {
    return std::nullopt;
  }
  if (mask.sizes() == x.sizes()) {
    return at::masked_select(x, mask);
  }
  if (mask.dim() != 1 || x.dim() < 2 || mask.size(0) != x.size(0)) {
    return std::nullopt;
  }
  const at::Tensor rows = at::arange(x.size(0), mask.options().dtype(c10::kLong));
  return x.index_select(0, at::masked_select(rows, mask));
}

namespace {

std::optional<at::Tensor> select_by_element(Arguments args) {
  const at::Tensor &x = args[0].toTensor(), &places = args[2].toTensor();
  const int64_t dim = args[1].toInt();
  const bool writes_into_out = args.size() > 3;
  if (writes_into_out || x.dim() == 0 || x.numel() == 0 || x.numel() != x.size(dim) || places.numel() == 0) {
    return std::nullopt;
  }
  std::vector<int64_t> size = x.sizes().vec();
  size[static_cast<size_t>(dim < 0 ? dim + x.dim() : dim)] = places.numel();
  return at::gather(x.flatten(), 0, places.to(c10::kLong)).view(size);
}

}  // namespace

std::optional<at::Tensor> by_element(Recipe recipe, Arguments args) {
  if (recipe == &index_select) {
    return select_by_element(args);
  }
  const bool writes = recipe == &index_put;
  if (recipe != &index && !writes) {
    return std::nullopt;
  }
  const at::Tensor& x = args[0].toTensor();
  const Result<OneIndex> found = one_index(args[1]);
  if (x.dim() != 1 || x.numel() == 0 || !found.ok() || found.value().positions.numel() == 0) {
    return std::nullopt;
  }
  const at::Tensor given = found.value().positions.to(c10::kLong);
  const at::Tensor places = at::where(given.lt(0), given.add(x.size(0)), given).flatten();
  if (!writes) {
    return at::gather(x, 0, places).view(given.sizes());
  }
  const at::Tensor& values = args[2].toTensor();
  if (args[3].toBool() || values.scalar_type() != x.scalar_type() ||
      !at::is_expandable_to(values.sizes(), given.sizes())) {
    return std::nullopt;
  }
  x.copy_(at::scatter(x, 0, places, values.to(x.device()).expand(given.sizes()).flatten()));
  return x;
}

Status index(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor& x = args[0].toTensor();
  SPYRE_TRY(arithmetic_type(x.scalar_type()));
  SPYRE_ASSIGN_OR_RETURN(const OneIndex index, one_index(args[1]));
  NodeBuilder node = graph.node(graph.result(), graph.result_size());
  const Value position = index.load_wrapped(graph, node, x.size(static_cast<int64_t>(index.dim)));
  node.store(node.load(graph.input(x), index.place(node, position)));
  return Status();
}

Status index_copy(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor &x = args[0].toTensor(), &source = args[3].toTensor();
  SPYRE_TRY(arithmetic_type(x.scalar_type()));
  const int64_t dim = args[1].toInt() < 0 ? args[1].toInt() + x.dim() : args[1].toInt();
  const OneIndex index{args[2].toTensor(), static_cast<size_t>(dim)};
  if (x.dim() == 0 || source.dim() != x.dim() || index.rank() != 1) {
    return refuse("an index or a source without dimensions");
  }
  start_from(graph, x);
  NodeBuilder node = graph.node(graph.result(), source.sizes().vec());
  const Value position = index.load(graph, node);
  node.store(node.load(graph.input(source)), index.place(node, position));
  return Status();
}

Status index_put(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor &x = args[0].toTensor(), &values = args[2].toTensor();
  SPYRE_TRY(arithmetic_type(x.scalar_type()));
  SPYRE_ASSIGN_OR_RETURN(const OneIndex index, one_index(args[1]));
  if (args[3].toBool()) {
    return refuse("an index that adds up what it meets twice");
  }
  const bool along = static_cast<int64_t>(index.dim) < x.dim();
  if (!along || values.scalar_type() != x.scalar_type() ||
      !at::is_expandable_to(values.sizes(), index.selected(x))) {
    return refuse("values that are not those of the indexed part");
  }
  start_from(graph, x);
  NodeBuilder node = graph.node(graph.result(), index.selected(x));
  const Value position = index.load_wrapped(graph, node, x.size(static_cast<int64_t>(index.dim)));
  node.store(operand(graph, node, args[2], host_type_of(x.scalar_type())), index.place(node, position));
  return Status();
}

Status embedding(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const at::Tensor &table = args[0].toTensor(), &index = args[1].toTensor();
  SPYRE_TRY(arithmetic_type(table.scalar_type()));
  NodeBuilder node = graph.node(graph.result(), graph.result_size());
  std::vector<Expr> at;
  for (size_t d = 0; d < static_cast<size_t>(index.dim()); ++d) {
    at.push_back(node.loop(d));
  }
  const Value row = node.load(graph.input(index), at);
  node.store(node.load(graph.input(table), {NodeBuilder::indirect(row), node.loop(node.output_loops() - 1)}));
  return Status();
}

Status arange(GraphBuilder& graph, Arguments args, std::string_view /*op*/) {
  const HostType type = graph.buffer(graph.result()).dtype;
  SPYRE_TRY(arithmetic_type(dtype_of(type)));
  const at::Scalar start = args[0].toScalar(), step = args[2].toScalar();
  NodeBuilder node = graph.node(graph.result(), graph.result_size());
  // Into integers PyTorch counts with whole numbers, whatever was asked for.
  const bool into_integers = type == HostType::kInt32 || type == HostType::kInt64;
  if (into_integers || (start.isIntegral(false) && step.isIntegral(false))) {
    node.store(node.index(step.toLong() * node.loop(0) + Expr::constant(start.toLong()), type));
    return Status();
  }
  const auto constant = [&](const at::Scalar& value) {
    return node.constant(value.toDouble(), HostType::kFloat32);
  };
  const Value steps = node.op("mul", {node.index(node.loop(0), HostType::kFloat32), constant(step)});
  node.store(node.op("add", {steps, constant(start)}));
  return Status();
}

}  // namespace spyre::glue
