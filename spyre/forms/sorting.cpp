// The largest or smallest elements of rows, in order, and where they were. Two ways: elements are ranked, an element's
// rank being the number of those before it, all pairs at once; what has too many pairs is taken one by one: find the
// extreme, note it, cross it out. Both are stable and exact.

#include <limits>

#include "spyre/forms/columns.h"
#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

constexpr int64_t kPairsOfSort = int64_t{1} << 24;
constexpr int64_t kOneByOneAtMost = 64;
constexpr int64_t kPositionsAtMost = int64_t{1} << 23;  // twice as many are exact in float32

/// Which elements are wanted of rows [..., n], and where they go, [..., k] each.
struct FirstOf {
  TensorView rows;
  int64_t k = 0;
  bool largest = false;
  TensorView values, positions;

  size_t rank() const { return rows.size.size(); }
  int64_t n() const { return rows.size.back(); }
};

/// Which of the others come before, given what was decided by a later part of the key. What is not a number is the
/// largest, and like others that are none.
Element comes_before(const Element& other, const Element& mine, bool largest, const Element& if_equal) {
  const Element &first = largest ? other : mine, &then = largest ? mine : other;
  const Element before = first > then || (different(first, first) && equal(then, then));
  const Element same = equal(other, mine) || (different(other, other) && different(mine, mine));
  return before || (same && if_equal);
}

void sort_halves(Builder& builder, const FirstOf& sorted) {
  const TensorView& rows = sorted.rows;
  const size_t rank = sorted.rank();
  const TensorView positions = counting(builder, sorted.n(), rows.dtype);
  const Element other = unsqueeze(rows, rank), mine = unsqueeze(rows, rank - 1);
  const Element ahead =
      comes_before(other, mine, sorted.largest, Element(unsqueeze(positions, 1)) < positions);
  const TensorView ranks = fold(builder, "sum", compute(builder, cast(ahead, rows.dtype)),
                                only(rank + 1, rank - 1), /*keepdim=*/true);
  const TensorView places = unsqueeze(counting(builder, sorted.k, rows.dtype), 1);
  const TensorView chosen = compute(builder, equal(ranks, places));
  const auto pick = [&](const TensorView& target, const TensorView& from) {
    const TensorView own = compute(builder, where(chosen, from, 0.0));
    fill(builder, target, fold(builder, "sum", own, only(rank + 1, rank), /*keepdim=*/false));
  };
  pick(sorted.values, unsqueeze(rows, rank - 1));
  pick(sorted.positions, positions);
}

/// What is compared, the first part first: integers as two digits, of which the lower is not negative.
std::vector<TensorView> keys_of(Builder& builder, const TensorView& rows) {
  if (!is_integer(rows.dtype)) {
    return {rows};
  }
  const Digits digits = digits_of(builder, rows);
  const Element under = Element(digits.low) < 0.0;
  return {compute(builder, where(under, Element(digits.high) - 1.0, digits.high)),
          compute(builder, where(under, Element(digits.low) + Digits::kBase, digits.low))};
}

/// The same in 32 bits, where what an element is compared with has to stand in a column.
void sort_words(Builder& builder, const FirstOf& sorted) {
  const size_t rank = sorted.rank();
  const TensorView rows = in_rows(builder, sorted.rows);
  const std::vector<TensorView> keys = keys_of(builder, rows);
  const TensorView positions = counting(builder, sorted.n(), HostType::kFloat32);
  Element ahead = Element(row_numbers(builder, sorted.n())) < positions;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    ahead = comes_before(as_column(builder, *key), unsqueeze(*key, rank - 1), sorted.largest, ahead);
  }
  const TensorView ranks =
      fold(builder, "sum", compute(builder, where(ahead, cast(1.0, HostType::kFloat32), 0.0)),
           only(rank + 1, rank - 1), /*keepdim=*/true);
  const TensorView chosen = compute(builder, equal(ranks, row_numbers(builder, sorted.k)));
  const auto picked = [&](const TensorView& from) {
    const TensorView own = compute(builder, where(chosen, from, 0.0));
    return as_row(builder, fold(builder, "sum", own, only(rank + 1, rank), /*keepdim=*/true));
  };
  std::vector<TensorView> parts;
  for (const TensorView& key : keys) {
    parts.push_back(picked(unsqueeze(key, rank - 1)));
  }
  fill(builder, sorted.values,
       parts.size() == 1 ? Element(parts[0]) : number_of(parts[1], parts[0], rows.dtype));
  fill(builder, sorted.positions, picked(positions));
}

void take_one_by_one(Builder& builder, const FirstOf& sorted) {
  constexpr HostType kWords = HostType::kFloat32;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool largest = sorted.largest;
  const size_t rank = sorted.rank();
  const auto n = static_cast<double>(sorted.n());
  const std::vector<bool> along = only(rank, rank - 1);
  const Element given = cast(sorted.rows, kWords);
  const TensorView signed_rows = compute(builder, largest ? given : call("neg", {given}));
  const TensorView positions = counting(builder, sorted.n(), kWords),
                   places = counting(builder, sorted.k, kWords);
  // What is not a number is the largest: it stands for an infinity, and comes before the real ones, or after them.
  const TensorView nan = compute(builder, different(signed_rows, signed_rows));
  TensorView left = compute(builder, where(nan, largest ? kInfinity : -kInfinity, signed_rows));
  const Element behind = Element(positions) + n;
  const TensorView order =
      compute(builder, largest ? where(nan, positions, behind) : where(nan, behind, positions));
  std::vector<int64_t> size = sorted.rows.size;
  size.back() = sorted.k;
  TensorView values = builder.local(size, kWords);
  fill(builder, values, cast(0.0, kWords));
  TensorView found = values;
  std::optional<TensorView> free;
  for (int64_t place = 0; place < sorted.k; ++place) {
    const TensorView extreme = fold(builder, "max", left, along, /*keepdim=*/true);
    // Crossed out is an infinity that others may be, too: only what is free counts.
    const Element is_extreme = equal(left, extreme);
    const Element met = free ? is_extreme && *free : is_extreme;
    const TensorView candidates = compute(builder, where(met, order, 2 * n));
    const TensorView at = fold(builder, "min", candidates, along, /*keepdim=*/true);
    const Element here = equal(places, static_cast<double>(place));
    values = compute(builder, where(here, extreme, values));
    found = compute(builder, where(here, at, found));
    const TensorView others = compute(builder, different(order, at));
    left = compute(builder, where(others, left, -kInfinity));
    free = free ? compute(builder, Element(*free) && others) : others;
  }
  const Element is_behind = Element(found) >= n;
  const Element is_nan = largest ? !is_behind : is_behind;
  const Element value = largest ? Element(values) : call("neg", {values});
  fill(builder, sorted.values, where(is_nan, std::numeric_limits<double>::quiet_NaN(), value));
  fill(builder, sorted.positions, where(is_behind, Element(found) - n, found));
}

/// The first k of the sorted elements along a dimension, and their positions; of equals the earlier comes first.
///
///     [3, 9, 3, 5], k = 3, largest: [9, 5, 3] from [1, 3, 0]
Status first_sorted(Builder& builder, const TensorView& x, int64_t k, int64_t along, bool largest) {
  SPYRE_TRY(arithmetic_type(x.dtype));
  if (x.size.empty()) {
    fill(builder, 0, x);
    fill(builder, 1, cast(0.0, builder.result(1).dtype));
    return Status();
  }
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(along, x.size.size()));
  const size_t last = x.size.size() - 1;
  const int64_t n = x.size[dim];
  if (element_count(x) == 0 || k <= 0 || k > n) {
    return refuse("the first of nothing");
  }
  const FirstOf sorted{.rows = move_dim(x, dim, last),
                       .k = k,
                       .largest = largest,
                       .values = move_dim(builder.result(0), dim, last),
                       .positions = move_dim(builder.result(1), dim, last)};
  const bool half = x.dtype == HostType::kFloat16, word = is_word(x.dtype);
  const bool few_pairs = element_count(x) * n <= kPairsOfSort;
  if (half && few_pairs && n <= kExactIn16Bits) {
    sort_halves(builder, sorted);
  } else if (half && few_pairs) {  // ranks and positions need 32 bits, and so does what stands beside them
    FirstOf wide = sorted;
    wide.rows = as(builder, sorted.rows, HostType::kFloat32);
    wide.values = builder.local(sorted.values.size, HostType::kFloat32);
    sort_words(builder, wide);
    fill(builder, sorted.values, cast(wide.values, x.dtype));
  } else if (word && few_pairs) {
    sort_words(builder, sorted);
  } else if (is_float(x.dtype) && k <= kOneByOneAtMost && n <= kPositionsAtMost) {
    take_one_by_one(builder, sorted);
  } else {
    return refuse("an order of more elements than all pairs of them can be compared");
  }
  return Status();
}

}  // namespace

Status top_k(Builder& builder, Arguments args, std::string_view /*op*/) {
  const bool largest = is_none(args[3]) || flag(args[3]);
  return first_sorted(builder, tensor(args[0]), integer(args[1]), integer(args[2], -1), largest);
}

Status sort(Builder& builder, Arguments args, std::string_view op) {
  const TensorView& x = tensor(args[0]);
  const size_t first = op == "stable" ? 2 : 1;
  const int64_t dim = integer(args[first], -1);
  int64_t count = 1;
  if (!x.size.empty()) {
    SPYRE_ASSIGN_OR_RETURN(const size_t along, dimension(dim, x.size.size()));
    count = x.size[along];
  }
  return first_sorted(builder, x, count, dim, flag(args[first + 1]));
}

}  // namespace spyre::forms
