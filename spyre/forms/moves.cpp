// Operators that move elements: copies, cat, gathers, and patterns made from positions.

#include <algorithm>
#include <array>
#include <cmath>

#include "spyre/forms/forms.h"
#include "spyre/forms/steps.h"

namespace spyre::forms {

Status copy(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_TRY(arithmetic_type(tensor(args[0]).dtype));
  NodeBuilder node = builder.node(builder.result(), builder.result().size);
  node.store(node.load(tensor(args[0])));
  return Status();
}

namespace {

/// Whether broadcasting makes `to` out of `from`.
bool expands_to(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  return from.size() <= to.size() && std::equal(from.rbegin(), from.rend(), to.rbegin(),
                                                [](int64_t a, int64_t b) { return a == b || a == 1; });
}

/// What the result holds where nothing is written: x itself, unless the result is x.
void start_from(Builder& builder, const TensorView& x) {
  if (x == builder.result()) {
    return;
  }
  NodeBuilder node = builder.node(builder.result(), x.size);
  node.store(node.load(x));
}

}  // namespace

Status concatenate(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& result = builder.result();
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1], 0), result.size.size()));
  int64_t start = 0;
  for (const std::optional<TensorView>& part : tensors(args[0])) {
    if (!part || element_count(*part) == 0) {
      continue;
    }
    SPYRE_TRY(arithmetic_type(part->dtype));
    if (part->size.size() != result.size.size()) {
      return refuse("tensors with different numbers of dimensions beside one another");
    }
    put(builder, *part, narrow(result, dim, start, part->size[dim]));
    start += part->size[dim];
  }
  return Status();
}

Status roll(Builder& builder, Arguments args, std::string_view /*op*/) {
  TensorView x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  const std::vector<int64_t> shifts = integers(args[1]);
  const std::vector<int64_t> dims = is_none(args[2]) ? std::vector<int64_t>() : integers(args[2]);
  TensorView last = builder.result();
  if (element_count(x) == 0) {
    return refuse("a roll of nothing");
  }
  if (dims.empty()) {  // as one row
    if (shifts.size() != 1 || !is_contiguous(last)) {
      return refuse("a roll of all elements into other strides than rows have");
    }
    x = reshape(builder, x, {element_count(x)});
    last = reshape(builder, last, {element_count(last)});
  } else if (dims.size() != shifts.size() || last.size.size() != x.size.size()) {
    return refuse("a roll with another number of dimensions than shifts");
  }
  for (size_t i = 0; i < shifts.size(); ++i) {
    SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(dims.empty() ? 0 : dims[i], x.size.size()));
    const int64_t extent = x.size[dim], wrapped = -(shifts[i] % extent);
    const int64_t start = wrapped < 0 ? wrapped + extent : wrapped;
    const TensorView target = i + 1 == shifts.size() ? last : builder.local(x.size, x.dtype);
    const std::array<TensorView, 2> parts = {narrow(x, dim, start, extent - start), narrow(x, dim, 0, start)};
    join(builder, target, dim, parts);
    x = target;
  }
  return Status();
}

Status scatter_slice(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &source = tensor(args[1]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  SPYRE_TRY(arithmetic_type(source.dtype));
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[2], 0), x.size.size()));
  const int64_t extent = x.size[dim];
  const auto inside = [&](const Argument& place, int64_t otherwise) {
    const int64_t at = integer(place, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  const int64_t first = inside(args[3], 0), end = std::max(first, inside(args[4], extent));
  const int64_t step = integer(args[5], 1);
  if (step < 1) {
    return refuse("a slice that steps backwards");
  }
  TensorView written = narrow(builder.result(), dim, first, (end - first + step - 1) / step);
  written.stride[dim] *= step;
  if (!expands_to(source.size, written.size)) {
    return refuse("a source of another size than the slice");
  }
  if (step == 1 && source.size == written.size) {
    const std::array<TensorView, 3> parts = {narrow(x, dim, 0, first), source,
                                             narrow(x, dim, end, extent - end)};
    join(builder, builder.result(), dim, parts);
    return Status();
  }
  start_from(builder, x);
  if (element_count(written) > 0) {
    put(builder, source, written);
  }
  return Status();
}

Status scatter_select(Builder& builder, Arguments args, std::string_view op) {
  const TensorView &x = tensor(args[0]), &source = tensor(args[1]);
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[2]), x.size.size()));
  SPYRE_ASSIGN_OR_RETURN(const size_t place, dimension(integer(args[3]), static_cast<size_t>(x.size[dim])));
  if (source.size.size() + 1 != x.size.size()) {
    return refuse("a source of another size");
  }
  const auto whole = [](size_t value) {
    return Number{.value = static_cast<double>(value), .kind = Number::Kind::kInt};
  };
  const std::array<Argument, 5> slice = {x, unsqueeze(source, dim), whole(dim), whole(place),
                                         whole(place + 1)};
  return scatter_slice(builder, Arguments(slice), op);
}

Status stack(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& result = builder.result();
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1], 0), result.size.size()));
  int64_t slot = 0;
  for (const std::optional<TensorView>& part : tensors(args[0])) {
    if (!part) {
      continue;
    }
    SPYRE_TRY(arithmetic_type(part->dtype));
    put(builder, *part, squeeze(narrow(result, dim, slot++, 1), dim));
  }
  return Status();
}

/// Axis by axis, the innermost first: what lies around a tensor along several is no slice of the result, and would begin
/// and end inside of sticks.
Status pad(Builder& builder, Arguments args, std::string_view /*op*/) {
  TensorView x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  const std::vector<int64_t> padding = integers(args[1]);
  const TensorView& result = builder.result();
  const size_t rank = result.size.size(), axes = padding.size() / 2;
  if (x.size.size() != rank || padding.size() > 2 * rank) {
    return refuse("more padding than dimensions");
  }
  for (size_t i = 0; i < axes; ++i) {  // what is cut is not padded
    const int64_t cut = std::max<int64_t>(-padding[2 * i], 0),
                  behind = std::max<int64_t>(-padding[2 * i + 1], 0);
    const size_t dim = rank - 1 - i;
    x = narrow(x, dim, cut, std::max<int64_t>(x.size[dim] - cut - behind, 0));
  }
  const double value = number(args[2], 0);
  for (size_t i = 0; i < axes; ++i) {
    const size_t dim = rank - 1 - i;
    const int64_t before = std::max<int64_t>(padding[2 * i], 0),
                  after = std::max<int64_t>(padding[2 * i + 1], 0);
    const bool is_last = std::all_of(padding.begin() + 2 * static_cast<std::ptrdiff_t>(i + 1), padding.end(),
                                     [](int64_t count) { return count <= 0; });
    if (is_last) {
      pad_into(builder, result, x, dim, before, value);
      return Status();
    }
    x = padded(builder, x, dim, before, after, value);
  }
  put(builder, x, result);
  return Status();
}

Status triangle(Builder& builder, Arguments args, std::string_view op) {
  SPYRE_ASSIGN_OR_RETURN(const HostType type, arithmetic_type(tensor(args[0]).dtype));
  const size_t rank = builder.result().size.size();
  if (rank < 2) {
    return refuse("a triangle of less than two dimensions");
  }
  NodeBuilder node = builder.node(builder.result(), builder.result().size);
  const int64_t diagonal = std::clamp(integer(args[1], 0), -kMostElements, kMostElements);
  // Below or on the diagonal: column - row - diagonal <= 0.
  const Expr distance = node.loop(rank - 1) + -1 * node.loop(rank - 2) + Expr::constant(-diagonal);
  const Value inside =
      node.op(op, {node.index(distance, HostType::kFloat32), node.constant(0, HostType::kFloat32)});
  const Value x = node.load(tensor(args[0]));
  node.store(node.op("where", {inside, x, node.constant(0, type)}));
  return Status();
}

Status diagonal_of(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_ASSIGN_OR_RETURN(const HostType type, arithmetic_type(x.dtype));
  const size_t rank = builder.result().size.size();
  if (x.size.size() + 1 != rank || element_count(x) == 0) {
    return refuse("a diagonal without elements");
  }
  const int64_t offset = integer(args[1], 0);
  SPYRE_ASSIGN_OR_RETURN(const size_t rows, dimension(integer(args[2], -2), rank));
  SPYRE_ASSIGN_OR_RETURN(const size_t columns, dimension(integer(args[3], -1), rank));
  std::vector<size_t> order;
  for (size_t d = 0; d < rank; ++d) {
    if (d != rows && d != columns) {
      order.push_back(d);
    }
  }
  order.push_back(rows);
  order.push_back(columns);
  const TensorView target = permute(builder.result(), order);
  // An element for each column: those in front of the diagonal, or behind it, have none.
  const TensorView each =
      padded(builder, x, rank - 2, std::max<int64_t>(offset, 0), std::max<int64_t>(-offset, 0));
  NodeBuilder node = builder.node(target, target.size);
  const Expr distance = node.loop(rank - 1) + -1 * node.loop(rank - 2) + Expr::constant(-offset);
  const Value here =
      node.op("eq", {node.index(distance, HostType::kFloat32), node.constant(0, HostType::kFloat32)});
  std::vector<Expr> position = node.loops(0, rank - 1);
  position.back() = node.loop(rank - 1);
  node.store(node.op("where", {here, node.load(each, position), node.constant(0, type)}));
  return Status();
}

namespace {

const Argument kFirstDimension = Number{.value = 0, .kind = Number::Kind::kInt};

/// Along the only dimension there are no rows to move: elements are chosen one by one, each by a position from the start.
void gather_elements(Builder& builder, const TensorView& x, const TensorView& positions) {
  const TensorView found = is_contiguous(builder.result())
                               ? reshape(builder, builder.result(), positions.size)
                               : builder.local(positions.size, x.dtype);
  const std::array<Argument, 3> arguments = {x, kFirstDimension, positions};
  builder.apply(&gather, Arguments(arguments), "", {found});
  if (found.buffer != builder.result().buffer) {
    fill(builder, 0, reshape(builder, found, builder.result().size));
  }
}

}  // namespace

Status index_select(Builder& builder, Arguments args, std::string_view /*op*/) {
  const auto with_dimension = [](const TensorView& x) { return x.size.empty() ? unsqueeze(x, 0) : x; };
  const TensorView table = with_dimension(tensor(args[0])), index = with_dimension(tensor(args[2]));
  const TensorView result = with_dimension(builder.result());
  SPYRE_TRY(arithmetic_type(table.dtype));
  if (index.size.size() != 1 || result.size.size() != table.size.size()) {
    return refuse("an index of several dimensions");
  }
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1]), table.size.size()));
  if (element_count(table) == table.size[dim]) {
    gather_elements(builder, reshape(builder, table, {table.size[dim]}), index);
    return Status();
  }
  NodeBuilder node = builder.node(result, result.size);
  const Value row = node.load(index, {node.loop(dim)});
  std::vector<Expr> position;
  for (size_t d = 0; d < node.output_loops(); ++d) {
    position.push_back(d == dim ? node.indirect(row, table.size[dim]) : node.loop(d));
  }
  node.store(node.load(table, position));
  return Status();
}

namespace {

/// Positions of which negative ones count from the end.
Element from_the_start(const Element& given, int64_t extent) {
  return where(given < 0.0, given + static_cast<double>(extent), given);
}

/// The positions in x[:, i], and the dimension they are along.
struct OneIndex {
  TensorView positions;
  size_t dim = 0;

  size_t rank() const { return positions.size.size(); }

  /// Whether the dimension holds all elements of x, so that there are no rows to move.
  bool is_along_all(const TensorView& x) const { return element_count(x) == x.size[dim]; }
  /// All positions in one row, from the start of x.
  TensorView in_one_row(Builder& builder, const TensorView& x) const {
    const Element wrapped = from_the_start(positions, x.size[dim]);
    return reshape(builder, compute(builder, wrapped), {element_count(positions)});
  }

  /// x[:, i] is x with the dimension replaced by those of the index.
  std::vector<int64_t> selected(const TensorView& x) const {
    std::vector<int64_t> size = x.size;
    const auto at = size.erase(size.begin() + static_cast<std::ptrdiff_t>(dim));
    size.insert(at, positions.size.begin(), positions.size.end());
    return size;
  }

  /// Where in x the current point of loops over `selected` lies.
  std::vector<Expr> place(NodeBuilder& node, const TensorView& x, Value position) const {
    const Expr indexed = node.indirect(position, x.size[dim]);
    std::vector<Expr> place;
    for (size_t d = 0; d < node.output_loops(); ++d) {
      if (d == dim) {
        place.push_back(indexed);
      }
      if (d < dim || d >= dim + rank()) {
        place.push_back(node.loop(d));
      }
    }
    if (dim == node.output_loops()) {
      place.push_back(indexed);
    }
    return place;
  }

  Value load(NodeBuilder& node) const { return node.load(positions, node.loops(dim, rank())); }

  /// The same where negative positions count from the end.
  Value load_wrapped(NodeBuilder& node, int64_t extent) const {
    const Value given = load(node);
    const HostType type = node.dtype(given);
    const Value negative = node.op("lt", {given, node.constant(0, type)});
    const Value wrapped = node.op("add", {given, node.constant(static_cast<double>(extent), type)});
    return node.op("where", {negative, wrapped, given});
  }
};

/// All of x[i, :, j], in the order of their dimensions.
Result<std::vector<OneIndex>> indices_of(const TensorView& x, const Argument& given) {
  std::vector<OneIndex> indices;
  size_t dim = 0;
  for (const std::optional<TensorView>& index : tensors(given)) {
    if (index.has_value()) {
      if (!is_integer(index->dtype)) {
        return refuse("a mask as index");
      }
      indices.push_back({*index, dim});
    }
    ++dim;
  }
  if (indices.empty()) {
    return refuse("no index tensor");
  }
  if (indices.back().dim >= x.size.size()) {
    return refuse("an index along a dimension that does not exist");
  }
  return indices;
}

Result<OneIndex> one_index(const TensorView& x, const Argument& given) {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<OneIndex> indices, indices_of(x, given));
  if (indices.size() > 1) {
    return refuse("more than one index tensor");
  }
  return indices[0];
}

/// One number for each place that positions name together, in the dimensions that they are along as one.
///
///     x[i, j] of x [4, 5]     5 * i + j
TensorView numbers_of(Builder& builder, const TensorView& x, const std::vector<OneIndex>& indices) {
  std::optional<Element> numbers;
  double step = 1;
  for (size_t k = indices.size(); k-- > 0;) {
    const int64_t extent = x.size[indices[k].dim];
    const TensorView given = as(builder, indices[k].positions, HostType::kInt64);
    const Element place = existing(builder, compute(builder, from_the_start(given, extent)), extent);
    numbers = numbers.has_value() ? place * step + *numbers : place;
    step *= static_cast<double>(extent);
  }
  return compute(builder, *numbers);
}

/// x[i, j]: rows by number, or elements where there are none.
Status index_by_number(Builder& builder, const TensorView& given, const std::vector<OneIndex>& indices) {
  const size_t rank = given.size.size(), last = indices.back().dim;
  const bool neighbours = last - indices[0].dim + 1 == indices.size();
  const size_t first = neighbours ? indices[0].dim : 0;  // PyTorch puts what is indexed in front otherwise
  std::vector<bool> indexed(rank);
  std::vector<size_t> order;
  int64_t extent = 1;
  for (const OneIndex& index : indices) {
    indexed[index.dim] = true;
    order.push_back(index.dim);
    extent *= given.size[index.dim];
  }
  std::vector<int64_t> flat;
  for (size_t d = 0, kept = 0; d < rank; ++d) {
    if (!indexed[d]) {
      order.insert(kept < first ? order.begin() + static_cast<std::ptrdiff_t>(kept) : order.end(), d);
      flat.push_back(given.size[d]);
      ++kept;
    }
  }
  flat.insert(flat.begin() + static_cast<std::ptrdiff_t>(first), extent);
  if (extent > kMostElements) {
    return refuse("numbers that do not fit the card's 32-bit integers");
  }
  const TensorView numbers = numbers_of(builder, given, indices), &result = builder.result();
  const TensorView x = reshape(builder, permute(given, order), flat);
  if (element_count(x) > extent) {
    const bool words_along_stick = first > 0 && first + 1 == flat.size() && is_word(x.dtype);
    const OneIndex index{numbers, words_along_stick ? 0 : first};
    const TensorView rows = words_along_stick ? compute(builder, move_dim(x, first, 0)) : x;
    const TensorView found = words_along_stick ? builder.local(index.selected(rows), x.dtype) : result;
    NodeBuilder node = builder.node(found, found.size);
    const Value position = index.load(node);
    node.store(node.load(rows, index.place(node, rows, position)));
    if (words_along_stick) {
      std::vector<size_t> back(found.size.size());
      for (size_t d = 0; d < back.size(); ++d) {
        back[d] = (d + index.rank()) % back.size();
      }
      fill(builder, 0, permute(found, back));
    }
    return Status();
  }
  gather_elements(builder, reshape(builder, x, {extent}),
                  reshape(builder, numbers, {element_count(numbers)}));
  return Status();
}

std::vector<int64_t> size_of(const Argument& argument) {
  return is_number(argument) ? std::vector<int64_t>() : tensor(argument).size;
}

}  // namespace

Status index(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  SPYRE_ASSIGN_OR_RETURN(const std::vector<OneIndex> indices, indices_of(x, args[1]));
  const OneIndex& index = indices[0];
  const bool words_along_stick = is_word(x.dtype) && index.dim + 1 == x.size.size();
  if (indices.size() > 1 || index.is_along_all(x) || words_along_stick) {
    return index_by_number(builder, x, indices);
  }
  NodeBuilder node = builder.node(builder.result(), builder.result().size);
  const Value position = index.load_wrapped(node, x.size[index.dim]);
  node.store(node.load(x, index.place(node, x, position)));
  return Status();
}

Status index_copy(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &source = tensor(args[3]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  if (x.size.empty() || source.size.size() != x.size.size() || tensor(args[2]).size.size() != 1) {
    return refuse("an index or a source without dimensions");
  }
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1]), x.size.size()));
  const OneIndex index{tensor(args[2]), dim};
  start_from(builder, x);
  NodeBuilder node = builder.node(builder.result(), source.size);
  const Value position = index.load(node);
  node.store(node.load(source), index.place(node, x, position));
  return Status();
}

Status index_put(Builder& builder, Arguments args, std::string_view op) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  if (flag(args[3]) && !is_number(args[2])) {
    return index_put_sum(builder, args, op);
  }
  SPYRE_ASSIGN_OR_RETURN(const OneIndex index, one_index(x, args[1]));
  if (flag(args[3])) {
    return refuse("an index that adds up what it meets twice");
  }
  if (type_of(builder, args[2]) != x.dtype || !expands_to(size_of(args[2]), index.selected(x))) {
    return refuse("values that are not those of the indexed part");
  }
  if (index.is_along_all(x) && is_contiguous(builder.result())) {
    const TensorView places = index.in_one_row(builder, x);
    Argument values = args[2];
    if (!is_number(values)) {
      values = reshape(builder, expand(builder, tensor(values), index.selected(x)), places.size);
    }
    const std::vector<int64_t> row = {x.size[index.dim]};
    const std::array<Argument, 4> arguments = {reshape(builder, x, row), kFirstDimension, places, values};
    builder.apply(&scatter, Arguments(arguments), "", {reshape(builder, builder.result(), row)});
    return Status();
  }
  start_from(builder, x);
  NodeBuilder node = builder.node(builder.result(), index.selected(x));
  const Value position = index.load_wrapped(node, x.size[index.dim]);
  node.store(operand(node, args[2], x.dtype), index.place(node, x, position));
  return Status();
}

Status embedding(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &table = tensor(args[0]), &index = tensor(args[1]);
  SPYRE_TRY(arithmetic_type(table.dtype));
  NodeBuilder node = builder.node(builder.result(), builder.result().size);
  const size_t rank = index.size.size();
  const Value row = node.load(index, node.loops(0, rank));
  node.store(node.load(table, {node.indirect(row, table.size[0]), node.loop(rank)}));
  return Status();
}

Status arange(Builder& builder, Arguments args, std::string_view /*op*/) {
  const HostType type = builder.result().dtype;
  SPYRE_TRY(arithmetic_type(type));
  const Number one{.value = 1, .kind = Number::Kind::kInt};
  const Number &start = std::get<Number>(args[0]), &step = is_none(args[2]) ? one : std::get<Number>(args[2]);
  NodeBuilder node = builder.node(builder.result(), builder.result().size);
  // Into integers PyTorch counts with whole numbers, whatever was asked for.
  const bool whole = start.kind == Number::Kind::kInt && step.kind == Number::Kind::kInt;
  if (is_integer(type) || whole) {
    if (std::fabs(start.value) > kMostElements || std::fabs(step.value) > kMostElements) {
      return refuse("numbers that do not fit the card's 32-bit integers");
    }
    const Expr at =
        static_cast<int64_t>(step.value) * node.loop(0) + Expr::constant(static_cast<int64_t>(start.value));
    node.store(node.index(at, type));
    return Status();
  }
  const auto constant = [&](const Number& value) { return node.constant(value.value, HostType::kFloat32); };
  const Value steps = node.op("mul", {node.index(node.loop(0), HostType::kFloat32), constant(step)});
  node.store(node.op("add", {steps, constant(start)}));
  return Status();
}

}  // namespace spyre::forms
