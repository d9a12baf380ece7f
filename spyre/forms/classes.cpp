// Which class an index means, for every class at once: rows of zeros and a one, and what follows from them.
//
// Comparisons of 16-bit values are the only ones whose operands the card repeats in every direction. Whole numbers up
// to 1024 are exact in them, so a larger one is two numbers: 5000 is 4 and 904.

#include <algorithm>
#include <numeric>

#include "spyre/forms/columns.h"
#include "spyre/forms/forms.h"

namespace spyre::forms {
namespace {

constexpr HostType kHalf = HostType::kFloat16;
constexpr int64_t kPairsOfClasses = int64_t{1} << 27;

/// Whether so many indices stand beside all classes in a reasonable number of pairs.
Status check_classes(int64_t count, int64_t classes) {
  const bool told_apart = classes > 0 && classes <= kExactIn16Bits * kExactIn16Bits;
  if (!told_apart || count <= 0 || count > kPairsOfClasses / classes) {
    return refuse("more pairs of indices and classes than can be compared");
  }
  return Status();
}

/// Indices that exist. In place of the one that shall mean nothing stands a number that is no class.
TensorView class_numbers(Builder& builder, const TensorView& index, int64_t classes,
                         std::optional<double> ignored) {
  if (!ignored) {
    return existing(builder, index, classes);
  }
  const TensorView nothing = compute(builder, equal(index, *ignored));
  const TensorView inside = compute(builder, where(nothing, 0.0, index));
  return compute(builder, where(nothing, -1.0, existing(builder, inside, classes)));
}

/// Numbers in fp16 that are equal to those of a class where the index is; an index that is none is equal to none.
std::vector<TensorView> in_fp16(Builder& builder, const TensorView& numbers, int64_t classes) {
  if (classes <= kExactIn16Bits) {
    return {as(builder, numbers, kHalf)};
  }
  const auto base = static_cast<double>(kExactIn16Bits);
  return {compute(builder, cast(call("floordiv", {numbers, base}), kHalf)),
          compute(builder, cast(call("remainder", {numbers, base}), kHalf))};
}

/// The same of 0, 1, 2, ... In fp16 from the start: what is narrowed to it has sticks in another order.
std::vector<TensorView> all_in_fp16(Builder& builder, int64_t classes) {
  if (classes <= kExactIn16Bits) {
    return {counting(builder, classes, kHalf)};
  }
  const int64_t rows = (classes + kExactIn16Bits - 1) / kExactIn16Bits;
  std::vector<TensorView> numbers;
  for (const size_t digit : {0, 1}) {
    const TensorView grid = builder.local({rows, kExactIn16Bits}, kHalf);
    NodeBuilder node = builder.node(grid, grid.size);
    node.store(node.index(node.loop(digit), kHalf));
    numbers.push_back(narrow(reshape(builder, grid, {rows * kExactIn16Bits}), 0, 0, classes));
  }
  return numbers;
}

Element all_equal(const std::vector<TensorView>& these, const std::vector<TensorView>& those) {
  Element same = equal(these[0], those[0]);
  for (size_t i = 1; i < these.size(); ++i) {
    same = same && equal(these[i], those[i]);
  }
  return same;
}

std::vector<TensorView> with_last_axis(std::vector<TensorView> tensors) {
  for (TensorView& tensor : tensors) {
    tensor = unsqueeze(tensor, tensor.size.size());
  }
  return tensors;
}

/// [..., classes]: whether an index means a class. [2, 0] of 3 is [[0, 0, 1], [1, 0, 0]].
TensorView class_of_each(Builder& builder, const TensorView& index, int64_t classes,
                         std::optional<double> ignored = std::nullopt) {
  const TensorView numbers = class_numbers(builder, index, classes, ignored);
  return compute(
      builder, all_equal(with_last_axis(in_fp16(builder, numbers, classes)), all_in_fp16(builder, classes)));
}

/// The same of one dimension, [classes, indices].
TensorView by_class(Builder& builder, const TensorView& index, int64_t classes,
                    std::optional<double> ignored = std::nullopt) {
  const TensorView numbers = class_numbers(builder, index, classes, ignored);
  return compute(
      builder, all_equal(with_last_axis(all_in_fp16(builder, classes)), in_fp16(builder, numbers, classes)));
}

TensorView total(Builder& builder, const TensorView& x) {
  return fold(builder, "sum", x, std::vector<bool>(x.size.size(), true), /*keepdim=*/false);
}

/// Rows [batch, classes] and a target for each.
Status check_loss(const TensorView& x, const TensorView& target) {
  if (x.size.size() != 2 || target.size.size() != 1 || target.size[0] != x.size[0] || !is_float(x.dtype) ||
      !is_integer(target.dtype)) {
    return refuse("a loss of other rows than one target each");
  }
  return check_classes(x.size[0], x.size[1]);
}

constexpr int64_t kMean = 1;  // at::Reduction
constexpr int64_t kNone = 0;

}  // namespace

Status one_hot(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& index = tensor(args[0]);
  const int64_t classes = integer(args[1]);
  if (!is_integer(index.dtype)) {
    return refuse("classes that are not integers");
  }
  SPYRE_TRY(check_classes(element_count(index), classes));
  fill(builder, 0, class_of_each(builder, index, classes));
  return Status();
}

Status nll_loss(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &target = tensor(args[1]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  SPYRE_TRY(check_loss(x, target));
  const int64_t reduction = integer(args[3]);
  const double ignored = number(args[4]);
  const TensorView meant = class_of_each(builder, target, x.size[1], ignored);
  const Element weighted = is_none(args[2]) ? Element(x) : Element(x) * tensor(args[2]);
  const TensorView own = compute(builder, where(meant, weighted, 0.0));
  const TensorView losses =
      compute(builder, call("neg", {fold(builder, "sum", own, {false, true}, /*keepdim=*/false)}));
  if (reduction == kNone) {
    fill(builder, 0, losses);
    fill(builder, 1, cast(0.0, x.dtype));
    return Status();
  }
  const Element one = cast(1.0, HostType::kFloat32);
  const TensorView counted = is_none(args[2]) ? compute(builder, where(equal(target, ignored), 0.0, one))
                                              : compute(builder, where(meant, tensor(args[2]), 0.0));
  const TensorView count = as(builder, total(builder, counted), x.dtype);
  const TensorView sum = total(builder, losses);
  fill(builder, 0, reduction == kMean ? Element(sum) / count : Element(sum));
  fill(builder, 1, count);
  return Status();
}

Status nll_loss_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[1]), &target = tensor(args[2]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  SPYRE_TRY(check_loss(x, target));
  TensorView gradient = tensor(args[0]);
  if (integer(args[4]) == kMean) {
    gradient = compute(builder, Element(gradient) / tensor(args[6]));
  }
  if (!gradient.size.empty()) {
    gradient = unsqueeze(gradient, gradient.size.size());
  }
  const TensorView meant = class_of_each(builder, target, x.size[1], number(args[5]));
  const Element slope = call("neg", {gradient});
  fill(builder, 0, where(meant, is_none(args[3]) ? slope : slope * tensor(args[3]), 0.0));
  return Status();
}

/// What the rows of a table gather: the gradients of all places that looked them up, but for the padding row's.
Status embedding_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &gradient = tensor(args[0]), &indices = tensor(args[1]);
  const int64_t rows = integer(args[2]), count = element_count(indices);
  if (!is_float(gradient.dtype) || gradient.size.empty() || !is_integer(indices.dtype) || flag(args[4])) {
    return refuse("gradients that are scaled by how often a row was looked up");
  }
  SPYRE_TRY(check_classes(count, rows));
  const TensorView places = by_class(builder, reshape(builder, indices, {count}), rows, number(args[3]));
  const TensorView ones = as(builder, places, gradient.dtype);
  const TensorView each = reshape(builder, gradient, {count, gradient.size.back()});
  fill(builder, 0, product(builder, ones, each, gradient.dtype));
  return Status();
}

/// x with values added where indices say: positions along dimensions side by side, those of them that are named.
Status index_put_sum(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &x = tensor(args[0]), &values = tensor(args[2]);
  const TensorList& indices = tensors(args[1]);
  size_t first = 0;
  while (first < indices.size() && !indices[first]) {
    ++first;
  }
  std::vector<TensorView> named;
  for (size_t d = first; d < indices.size() && indices[d]; ++d) {
    named.push_back(*indices[d]);
  }
  const size_t after = first + named.size();
  const bool together = std::none_of(indices.begin() + static_cast<std::ptrdiff_t>(after), indices.end(),
                                     [](const auto& index) { return index.has_value(); });
  const bool numbers = std::all_of(named.begin(), named.end(),
                                   [](const TensorView& index) { return is_integer(index.dtype); });
  if (named.empty() || !together || !numbers || after > x.size.size() || !is_float(x.dtype) ||
      values.dtype != x.dtype || element_count(x) == 0) {
    return refuse("an index that adds up what it meets twice");
  }
  // Elements counted by their positions along the named dimensions: one number each.
  std::optional<Element> place;
  int64_t classes = 1;
  for (size_t i = 0; i < named.size(); ++i) {
    const auto extent = static_cast<double>(x.size[first + i]);
    const Element given = cast(named[i], HostType::kInt64);
    const Element own = compute(builder, where(given < 0.0, given + extent, given));
    place = place ? *place * extent + own : own;
    classes *= x.size[first + i];
  }
  const TensorView places = compute(builder, *place);
  const int64_t count = element_count(places);
  SPYRE_TRY(check_classes(count, classes));
  // What is named comes first: [places, others] of the values, [classes, others] of x.
  std::vector<int64_t> given = x.size;
  given.erase(given.begin() + static_cast<std::ptrdiff_t>(first),
              given.begin() + static_cast<std::ptrdiff_t>(after));
  given.insert(given.begin() + static_cast<std::ptrdiff_t>(first), places.size.begin(), places.size.end());
  if (values.size.size() > given.size()) {
    return refuse("values that are not those of the indexed part");
  }
  TensorView each = expand(builder, values, given), target = builder.result(), rows = x;
  for (size_t i = 0; i < places.size.size(); ++i) {
    each = move_dim(each, first + i, i);
  }
  for (size_t i = 0; i < named.size(); ++i) {
    rows = move_dim(rows, first + i, i);
    target = move_dim(target, first + i, i);
  }
  const TensorView meant = by_class(builder, reshape(builder, places, {count}), classes);
  const TensorView sums = product(builder, as(builder, meant, x.dtype),
                                  reshape(builder, each, {count, element_count(each) / count}), x.dtype);
  fill(builder, target, Element(rows) + reshape(builder, sums, rows.size));
  return Status();
}

namespace {

/// Integers as fp16 numbers that are equal where the integers are: the card broadcasts along a stick in 16 bits only.
std::vector<TensorView> quarters_of(Builder& builder, const TensorView& x) {
  if (!is_integer(x.dtype)) {
    return {x};
  }
  constexpr double kBase = 256;
  const Digits digits = digits_of(builder, x);
  std::vector<TensorView> numbers;
  for (const TensorView& part : {digits.low, digits.high}) {
    const TensorView upper = compute(builder, call("floor", {Element(part) * (1 / kBase)}));
    numbers.push_back(as(builder, upper, kHalf));
    numbers.push_back(compute(builder, cast(Element(part) - Element(upper) * kBase, kHalf)));
  }
  return numbers;
}

}  // namespace

Status is_in(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &elements = tensor(args[0]), &tests = tensor(args[1]);
  SPYRE_ASSIGN_OR_RETURN(const HostType type, common_type(builder, {&args[0], &args[1]}));
  const bool invert = flag(args[3]);
  const auto answer = [&](const Element& found) {
    fill(builder, 0, invert ? !found : found);
    return Status();
  };
  const int64_t count = element_count(tests);
  if (count == 0) {
    fill(builder, 0, cast(invert ? 1.0 : 0.0, HostType::kBool));
    return Status();
  }
  if (count == 1) {
    return answer(equal(cast(elements, type), cast(reshape(builder, tests, {}), type)));
  }
  const TensorView row = reshape(builder, as(builder, tests, type), {count});
  const std::vector<TensorView> mine = quarters_of(builder, as(builder, elements, type));
  const TensorView pairs = compute(builder, all_equal(with_last_axis(mine), quarters_of(builder, row)));
  const size_t rank = elements.size.size();
  return answer(fold(builder, "any", pairs, only(rank + 1, rank), /*keepdim=*/false));
}

/// As many intervals of equal width, the last with both its ends.
Status histogram(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(arithmetic_type(x.dtype));
  const int64_t count = element_count(x);
  const double bins = number(args[1], 100), low = number(args[2], 0), high = number(args[3], 0);
  if (low >= high) {
    return refuse("intervals between the extremes of the values themselves");
  }
  if (x.dtype == HostType::kBool || bins < 1 || bins > kExactIn16Bits || count == 0 ||
      count > kPairsOfClasses / 2 / static_cast<int64_t>(bins)) {
    return refuse("more pairs of values and intervals than can be compared");
  }
  const Element numbers = as(builder, reshape(builder, x, {count}), HostType::kFloat32);
  const Element place = call("floor", {(numbers - low) * bins / (high - low)});
  const Element closed = where(equal(numbers, high), bins - 1, place);
  const Element inside = numbers >= low && numbers <= high;
  const TensorView places = compute(builder, cast(where(inside, closed, -1.0), kHalf));
  const Element met = equal(unsqueeze(places, 1), counting(builder, static_cast<int64_t>(bins), kHalf));
  const TensorView ones = compute(builder, cast(met, HostType::kFloat32));
  fill(builder, 0, fold(builder, "sum", ones, {true, false}, /*keepdim=*/false));
  return Status();
}

}  // namespace spyre::forms
