// Elements read and written at positions of their own, as choices between all pairs of an element and a position.
//
// The card adds an index to the address of a row; it has no index for each element. Here every position along a
// dimension stands beside every index, along an axis of their own, and a comparison tells which of them are meant. What
// an index means more than once is added up by a sum over those meant, or is the last of them.

#include <algorithm>
#include <cmath>
#include <variant>

#include "spyre/forms/columns.h"
#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

constexpr int64_t kPairsOfScatter = int64_t{1} << 25;
constexpr int64_t kElementsAsRows = int64_t{1} << 24;  // a stick each: 2 GiB

/// The axes [..., indices, positions, ...] of pairs along a dimension, as the type of the elements wants them: 16-bit
/// values stand where they are; of 32-bit values, those along the last dimension become columns.
class Pairs {
 public:
  Pairs(Builder& builder, const TensorView& x, size_t dim, const TensorView& index)
      : builder_(builder), wide_(x.dtype == HostType::kFloat32), dim_(dim), rank_(x.size.size()) {
    const TensorView each = as(builder, index, wide_ ? HostType::kFloat32 : HostType::kFloat16);
    const TensorView numbers = this->numbers(x.size[dim], /*column=*/dim + 1 != rank_);
    meant_ = compute(builder, equal(by_index(each), numbers));
  }

  /// Which pairs are meant.
  const TensorView& meant() const { return meant_; }
  /// The axis of the positions, and of the indices.
  size_t positions_axis() const { return dim_ + 1; }
  size_t indices_axis() const { return dim_; }

  /// What has an element for each index, beside all positions.
  TensorView by_index(const TensorView& x) const {
    return in_columns() ? as_column(builder_, x) : unsqueeze(x, dim_ + 1);
  }
  /// 1, 2, 3, ... by index.
  TensorView turns(int64_t count) const {
    const TensorView numbers = compute(builder_, Element(this->numbers(count, /*column=*/true)) + 1.0);
    return in_columns() ? numbers : unsqueeze(numbers, 1);
  }
  /// The sum over positions, into a tensor with an element for each index.
  void sum_positions(const TensorView& target, const Element& pairs) const {
    const TensorView terms = compute(builder_, pairs);
    const std::vector<bool> along = only(rank_ + 1, positions_axis());
    if (in_columns()) {
      fill(builder_, target, as_row(builder_, fold(builder_, "sum", terms, along, /*keepdim=*/true)));
    } else {
      fold_into(builder_, target, "sum", terms, along, /*keepdim=*/false);
    }
  }

 private:
  bool in_columns() const { return wide_ && dim_ + 1 == rank_; }

  TensorView numbers(int64_t n, bool column) const {
    const size_t after = rank_ - dim_ - 1;
    TensorView numbers = wide_ && column
                             ? row_numbers(builder_, n)
                             : counting(builder_, n, wide_ ? HostType::kFloat32 : HostType::kFloat16);
    const bool is_column = numbers.size.size() == 2;
    for (size_t d = is_column ? 1 : 0; d < after; ++d) {
      numbers = unsqueeze(numbers, numbers.size.size());
    }
    return numbers;
  }

  Builder& builder_;
  bool wide_;
  size_t dim_, rank_;
  TensorView meant_;
};

/// The part of x that has the size of the indices, but along one dimension.
TensorView fit(TensorView x, const std::vector<int64_t>& size, std::optional<size_t> kept = std::nullopt) {
  for (size_t d = 0; d < size.size(); ++d) {
    if (d != kept) {
      x = narrow(x, d, 0, size[d]);
    }
  }
  return x;
}

/// The floats that stand beside positions: 32-bit ones where 16 bits do not tell all positions apart.
HostType beside_positions(const TensorView& x, size_t dim) {
  if (x.size[dim] > kExactIn16Bits) {
    return HostType::kFloat32;
  }
  return x.dtype == HostType::kBool ? HostType::kFloat16 : x.dtype;
}

/// Whether all positions can be told apart, in a reasonable number of pairs. Writes go to all of x but along `dim`.
Status check_pairs(const TensorView& x, size_t dim, const TensorView& index, const TensorView* source,
                   bool writes) {
  SPYRE_TRY(arithmetic_type(x.dtype));
  if (index.size.size() != x.size.size() || !is_integer(index.dtype) || element_count(x) == 0 ||
      element_count(index) == 0) {
    return refuse("an index of another shape than what it points at");
  }
  if (source != nullptr && (source->dtype != x.dtype || source->size.size() != x.size.size())) {
    return refuse("a source of another kind than the target");
  }
  for (size_t d = 0; d < x.size.size(); ++d) {
    const bool fits = writes ? index.size[d] == x.size[d] : index.size[d] <= x.size[d];
    const bool has_source = source == nullptr || index.size[d] <= source->size[d];
    if ((d != dim && !fits) || !has_source) {
      return refuse("an index that does not point at all of a tensor");
    }
  }
  const int64_t n = x.size[dim], count = index.size[dim];
  const bool told_apart = n <= kExactIn16Bits || dim + 1 == x.size.size();
  if (count > kExactIn16Bits || !told_apart || element_count(index) > kPairsOfScatter / std::max(n, count)) {
    return refuse("more pairs of positions and indices than can be compared");
  }
  return Status();
}

void gather_floats(Builder& builder, const TensorView& target, const TensorView& x, size_t dim,
                   const TensorView& index) {
  const Pairs pairs(builder, x, dim, index);
  pairs.sum_positions(target, where(pairs.meant(), unsqueeze(x, dim), 0.0));
}

/// [5, 6, 7] at [2, 0] gives [7, 5].
void gather_into(Builder& builder, const TensorView& target, const TensorView& given, size_t dim,
                 const TensorView& index) {
  const TensorView x = fit(given, index.size, dim);
  const auto gathered = [&](const TensorView& from) {
    const TensorView found = builder.local(index.size, from.dtype);
    gather_floats(builder, found, from, dim, index);
    return found;
  };
  const HostType beside = beside_positions(x, dim);
  if (is_integer(x.dtype)) {
    const Digits digits = digits_of(builder, x);
    fill(builder, target, number_of(gathered(digits.low), gathered(digits.high), x.dtype));
  } else if (x.dtype == HostType::kBool) {
    fill(builder, target, different(gathered(as(builder, x, beside)), 0.0));
  } else if (x.dtype != beside) {
    fill(builder, target, cast(gathered(as(builder, x, beside)), x.dtype));
  } else {
    gather_floats(builder, target, x, dim, index);
  }
}

/// A tensor or a number.
using Source = std::variant<TensorView, double>;

/// [5, 6, 7] with [1, 2, 3] at [2, 0, 2] is [2, 6, 3]: of several sources for a place the last one is there.
Element scattered_floats(Builder& builder, const TensorView& x, size_t dim, const TensorView& index,
                         const Source& source) {
  const Pairs pairs(builder, x, dim, index);
  const std::vector<bool> over_indices = only(x.size.size() + 1, pairs.indices_axis());
  const TensorView turns = pairs.turns(index.size[dim]);
  const TensorView last = fold(builder, "max", compute(builder, where(pairs.meant(), turns, 0.0)),
                               over_indices, /*keepdim=*/true);
  const Element written = Element(squeeze(last, dim)) > 0.0;
  if (const auto* number = std::get_if<double>(&source)) {
    return where(written, *number, x);
  }
  const TensorView each = pairs.by_index(fit(std::get<TensorView>(source), index.size));
  const TensorView own = compute(builder, where(equal(turns, last), each, 0.0));
  return where(written, fold(builder, "sum", own, over_indices, /*keepdim=*/false), x);
}

Element scattered(Builder& builder, const TensorView& x, size_t dim, const TensorView& index,
                  const Source& source) {
  const auto* number = std::get_if<double>(&source);
  const HostType beside = beside_positions(x, dim);
  const auto floats = [&](const TensorView& given) { return as(builder, given, beside); };
  if (x.dtype == HostType::kBool) {
    const Source truths =
        number != nullptr ? Source(*number != 0 ? 1.0 : 0.0) : Source(floats(std::get<TensorView>(source)));
    return different(scattered_floats(builder, floats(x), dim, index, truths), 0.0);
  }
  if (is_integer(x.dtype)) {
    const Digits digits = digits_of(builder, x);
    Source low, high;
    if (number != nullptr) {
      const double upper = std::floor(std::trunc(*number) / Digits::kBase);
      low = std::trunc(*number) - upper * Digits::kBase;
      high = upper;
    } else {
      const Digits parts = digits_of(builder, std::get<TensorView>(source));
      low = parts.low;
      high = parts.high;
    }
    const TensorView lower = compute(builder, scattered_floats(builder, digits.low, dim, index, low));
    const TensorView upper = compute(builder, scattered_floats(builder, digits.high, dim, index, high));
    return number_of(lower, upper, x.dtype);
  }
  if (x.dtype != beside) {
    const Source wide = number != nullptr ? source : Source(floats(std::get<TensorView>(source)));
    return cast(compute(builder, scattered_floats(builder, floats(x), dim, index, wide)), x.dtype);
  }
  return scattered_floats(builder, x, dim, index, source);
}

/// What sources add to each place.
Element added(Builder& builder, const TensorView& x, size_t dim, const TensorView& index,
              const TensorView& source) {
  if (is_integer(x.dtype)) {
    const Digits digits = digits_of(builder, x), parts = digits_of(builder, source);
    const TensorView low = compute(builder, added(builder, digits.low, dim, index, parts.low));
    const TensorView high = compute(builder, added(builder, digits.high, dim, index, parts.high));
    return number_of(low, high, x.dtype);
  }
  const HostType beside = beside_positions(x, dim);
  if (x.dtype != beside) {
    const TensorView wide = as(builder, x, beside);
    return cast(compute(builder, added(builder, wide, dim, index, as(builder, source, beside))), x.dtype);
  }
  const Pairs pairs(builder, x, dim, index);
  const TensorView terms = compute(builder, where(pairs.meant(), pairs.by_index(source), 0.0));
  return fold(builder, "sum", terms, only(x.size.size() + 1, pairs.indices_axis()), /*keepdim=*/false);
}

Status check_sums(const TensorView& x) {
  return is_float(x.dtype) || is_integer(x.dtype) ? Status() : refuse("sums of truth values");
}

/// x and what sources add to each place: integers so many at a time as float32 adds exactly.
Element sums(Builder& builder, const TensorView& x, size_t dim, const TensorView& index,
             const TensorView& source) {
  const int64_t count = index.size[dim], step = is_integer(x.dtype) ? Digits::kExactSums : count;
  TensorView sum = x;
  for (int64_t start = 0; start + step < count; start += step) {
    const auto part = [&](const TensorView& all) { return narrow(all, dim, start, step); };
    sum = compute(builder, Element(sum) + added(builder, x, dim, part(index), part(source)));
  }
  const int64_t rest = count - (count - 1) / step * step;
  const auto last = [&](const TensorView& all) { return narrow(all, dim, count - rest, rest); };
  return Element(sum) + added(builder, x, dim, last(index), last(source));
}

/// The number of every element that an index names in x, row by row.
///
///     x [4, 5], dimension 0, index[i, j] = 2     5 * 2 + j
TensorView numbers_along(Builder& builder, const TensorView& x, size_t dim, const TensorView& index) {
  const std::vector<int64_t> steps = contiguous_strides(x.size);
  const size_t rank = x.size.size();
  const TensorView places = as(builder, existing(builder, index, x.size[dim]), HostType::kInt64);
  Element number = Element(places) * static_cast<double>(steps[dim]);
  for (size_t d = 0; d < rank; ++d) {
    if (d == dim || index.size[d] == 1) {
      continue;
    }
    TensorView coordinate = counting(builder, index.size[d], HostType::kInt64);
    while (coordinate.size.size() < rank - d) {
      coordinate = unsqueeze(coordinate, coordinate.size.size());
    }
    number = number + Element(coordinate) * static_cast<double>(steps[d]);
  }
  return reshape(builder, compute(builder, number), {element_count(index)});
}

/// [5, 6, 7] -> [[5, 5], [6, 6], [7, 7]]: a row for each element, which the card finds by its number.
TensorView as_rows(Builder& builder, const TensorView& x) {
  const int64_t count = element_count(x);
  const TensorView rows = builder.local({count, 2}, x.dtype);
  put(builder, expand(builder, unsqueeze(reshape(builder, x, {count}), 1), rows.size), rows);
  return rows;
}

TensorView from_rows(const TensorView& rows) {
  return squeeze(narrow(rows, 1, 0, 1), 1);
}

/// Whether elements and indices are few enough to be rows, and the index fits.
bool can_be_rows(const TensorView& x, size_t dim, const TensorView& index) {
  const bool in_limits = element_count(x) <= kElementsAsRows && element_count(index) <= kElementsAsRows;
  bool fits = arithmetic_type(x.dtype).ok() && is_integer(index.dtype) &&
              index.size.size() == x.size.size() && element_count(x) > 0 && element_count(index) > 0;
  for (size_t d = 0; fits && d < x.size.size(); ++d) {
    fits = d == dim || index.size[d] <= x.size[d];
  }
  return in_limits && fits;
}

/// Whether there is an element for each index.
bool holds(const TensorView& source, const TensorView& x, const TensorView& index) {
  bool fits = source.dtype == x.dtype && source.size.size() == index.size.size();
  for (size_t d = 0; fits && d < index.size.size(); ++d) {
    fits = index.size[d] <= source.size[d];
  }
  return fits;
}

void gather_rows(Builder& builder, const TensorView& target, const TensorView& x, size_t dim,
                 const TensorView& index) {
  const TensorView rows = as_rows(builder, x), numbers = numbers_along(builder, x, dim, index);
  const TensorView found = builder.local({element_count(index), 2}, x.dtype);
  NodeBuilder node = builder.node(found, found.size);
  const Expr row = node.indirect(node.load(numbers, {node.loop(0)}), rows.size[0]);
  node.store(node.load(rows, {row, node.loop(1)}));
  fill(builder, target, reshape(builder, from_rows(found), index.size));
}

/// Which of several sources for a place is there is as good as any other, as PyTorch says of them.
void scatter_rows(Builder& builder, const TensorView& target, const TensorView& x, size_t dim,
                  const TensorView& index, const Source& source) {
  const TensorView rows = as_rows(builder, x), numbers = numbers_along(builder, x, dim, index);
  const auto* value = std::get_if<double>(&source);
  const TensorView written = value != nullptr
                                 ? builder.local({element_count(index), 2}, x.dtype)
                                 : as_rows(builder, fit(std::get<TensorView>(source), index.size));
  if (value != nullptr) {
    fill(builder, written, cast(*value, x.dtype));
  }
  NodeBuilder node = builder.node(rows, written.size);
  const Value from = node.load(written, {node.loop(0), node.loop(1)});
  const Expr row = node.indirect(node.load(numbers, {node.loop(0)}), rows.size[0]);
  node.store(from, {row, node.loop(1)});
  fill(builder, target, reshape(builder, from_rows(rows), x.size));
}

/// In pairs, or as rows where that were too many.
Status gather_at(Builder& builder, const TensorView& target, const TensorView& x, size_t dim,
                 const TensorView& index) {
  const Status pairs = check_pairs(x, dim, index, /*source=*/nullptr, /*writes=*/false);
  if (pairs.ok()) {
    gather_into(builder, target, x, dim, existing(builder, index, x.size[dim]));
  } else if (can_be_rows(x, dim, index)) {
    gather_rows(builder, target, x, dim, index);
  } else {
    return pairs;
  }
  return Status();
}

/// x with the places along a dimension in another order.
void rows_at(Builder& builder, const TensorView& target, const TensorView& x, size_t dim,
             const TensorView& places) {
  NodeBuilder node = builder.node(target, x.size);
  std::vector<Expr> position = node.loops(0, x.size.size());
  position[dim] = node.indirect(node.load(places, {node.loop(dim)}), x.size[dim]);
  node.store(node.load(x, position));
}

}  // namespace

Status gather(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &index = tensor(args[2]);
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1]), x.size.size()));
  return gather_at(builder, builder.result(), x, dim, index);
}

Status flip(Builder& builder, Arguments args, std::string_view /*op*/) {
  TensorView x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  const std::vector<int64_t> dims = integers(args[1]);
  if (dims.empty() || x.size.empty()) {
    fill(builder, 0, x);
    return Status();
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(dims[i], x.size.size()));
    const int64_t n = x.size[dim];
    const TensorView target = i + 1 == dims.size() ? builder.result() : builder.local(x.size, x.dtype);
    const TensorView count = counting(builder, n, HostType::kInt64);
    const TensorView places = compute(builder, static_cast<double>(n - 1) - Element(count));
    if (element_count(x) ==
        n) {  // along the only dimension there are no rows: elements are chosen one by one
      TensorView each = places;
      while (each.size.size() < x.size.size() - dim) {
        each = unsqueeze(each, each.size.size());
      }
      each = expand(builder, each, x.size);
      SPYRE_TRY(gather_at(builder, target, x, dim, each));
    } else if (is_word(x.dtype) &&
               dim + 1 == x.size.size()) {  // words change places as rows, and not along a stick
      const TensorView rows = compute(builder, move_dim(x, dim, 0));
      const TensorView flipped = builder.local(rows.size, x.dtype);
      rows_at(builder, flipped, rows, 0, places);
      fill(builder, target, move_dim(flipped, 0, dim));
    } else {
      rows_at(builder, target, x, dim, places);
    }
    x = target;
  }
  return Status();
}

Status scatter(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &index = tensor(args[2]);
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1]), x.size.size()));
  const bool is_value = is_number(args[3]);
  const Source source = is_value ? Source(number(args[3])) : Source(tensor(args[3]));
  const Status pairs = check_pairs(x, dim, index, is_value ? nullptr : &tensor(args[3]), /*writes=*/true);
  if (!pairs.ok() && can_be_rows(x, dim, index) && (is_value || holds(tensor(args[3]), x, index))) {
    scatter_rows(builder, builder.result(), x, dim, index, source);
    return Status();
  }
  SPYRE_TRY(pairs);
  fill(builder, 0, scattered(builder, x, dim, existing(builder, index, x.size[dim]), source));
  return Status();
}

Status scatter_add(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &index = tensor(args[2]), &source = tensor(args[3]);
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1]), x.size.size()));
  SPYRE_TRY(check_pairs(x, dim, index, &source, /*writes=*/true));
  SPYRE_TRY(check_sums(x));
  const TensorView places = existing(builder, index, x.size[dim]);
  fill(builder, 0, sums(builder, x, dim, places, fit(source, index.size)));
  return Status();
}

Status index_add(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &index = tensor(args[2]);
  const size_t rank = x.size.size();
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[1]), rank));
  if (index.size.size() != 1 || tensor(args[3]).size.size() != rank || index.size[0] > kExactIn16Bits) {
    return refuse("an index or a source without dimensions");
  }
  const double factor = number(args[4], 1);
  const TensorView source =
      factor == 1 ? tensor(args[3]) : compute(builder, cast(Element(tensor(args[3])) * factor, x.dtype));
  TensorView each = existing(builder, index, x.size[dim]);
  const bool narrow_type = !is_integer(x.dtype) && x.dtype != HostType::kFloat32;
  // An index for each row, as one for each element of the rows.
  if (!narrow_type && dim + 1 != rank) {
    each = as_column(builder, as(builder, each, HostType::kFloat32));
  }
  while (each.size.size() < rank - dim) {
    each = unsqueeze(each, each.size.size());
  }
  each = expand(builder, each, source.size);
  TensorView as_integers = each;
  as_integers.dtype = index.dtype;
  SPYRE_TRY(check_pairs(x, dim, as_integers, &source, /*writes=*/true));
  SPYRE_TRY(check_sums(x));
  fill(builder, 0, sums(builder, x, dim, each, source));
  return Status();
}

}  // namespace spyre::forms
