// Variances, lengths, and norms by groups of channels.

#include <algorithm>
#include <cmath>
#include <limits>

#include "spyre/forms/forms.h"
#include "spyre/forms/steps.h"

namespace spyre::forms {
namespace {

Element squared(const Element& x) {
  return call("pow", {x, 2.0});
}

Element root(const Element& x) {
  return call("sqrt", {x});
}

Status check_float(const TensorView& x) {
  return is_float(x.dtype) ? Status() : refuse("statistics of integers");
}

/// An eps that the dtype would hold as zero is the smallest it holds; a negative one is the caller's business. The
/// smallest normal number of the card's 16-bit format: an epsilon below it would be rounded, or zero.
double at_least_held(double eps, HostType dtype) {
  const bool half = dtype != HostType::kFloat32;
  return half && eps >= 0 ? std::max(eps, 0x1p-30) : eps;
}

/// A tensor [channels] as it stands beside an input [batch, channels, ...].
TensorView by_channel(TensorView each, size_t rank) {
  for (size_t d = 2; d < rank; ++d) {
    each = unsqueeze(each, each.size.size());
  }
  return each;
}

/// Times the weight and plus the bias of each channel, those that there are.
Element affine(Element x, size_t rank, const Argument& weight, const Argument& bias) {
  x = is_none(weight) ? x : x * by_channel(tensor(weight), rank);
  return is_none(bias) ? x : x + by_channel(tensor(bias), rank);
}

}  // namespace

Status variance(Builder& builder, Arguments args, std::string_view op) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(check_float(x));
  SPYRE_ASSIGN_OR_RETURN(const std::vector<bool> folded, dimensions(args[1], x.size.size()));
  const double correction = number(args[2], 1);
  const bool keepdim = flag(args[3]);
  double count = 1;
  for (size_t d = 0; d < folded.size(); ++d) {
    count *= folded[d] ? static_cast<double>(x.size[d]) : 1;
  }
  const double factor =
      count > correction ? 1 / (count - correction) : std::numeric_limits<double>::infinity();

  const TensorView rows = wide(builder, x);
  // A second mean is a rounding of the first.
  const TensorView rest = centred(builder, centred(builder, rows, folded), folded);
  const TensorView squares = fold(builder, "sum", compute(builder, squared(rest)), folded, keepdim);
  const Element found = Element(squares) * factor;
  fill(builder, 0, op == "std" ? root(found) : found);
  if (builder.results() > 1) {
    fill(builder, 1, fold(builder, "mean", rows, folded, keepdim));
  }
  return Status();
}

Status vector_norm(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(check_float(x));
  if (builder.result().dtype != x.dtype) {
    return refuse("a norm as another type");
  }
  SPYRE_ASSIGN_OR_RETURN(const std::vector<bool> folded, dimensions(args[2], x.size.size()));
  const double order = number(args[1], 2);
  const bool keepdim = flag(args[3]);
  const auto of_lengths = [&](std::string_view op) {
    fold_result(builder, 0, op, compute(builder, call("abs", {Element(x)})), folded, keepdim);
    return Status();
  };
  if (order == 2) {
    const TensorView squares = compute(builder, Element(x) * Element(x));
    fill(builder, 0, root(fold(builder, "sum", squares, folded, keepdim)));
    return Status();
  }
  if (order == 1) {
    return of_lengths("sum");
  }
  if (std::isinf(order)) {
    return of_lengths(order > 0 ? "max" : "min");
  }
  return refuse("a norm of another order than 1, 2 or infinity");
}

Status weight_norm(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &v = tensor(args[0]), &g = tensor(args[1]);
  SPYRE_TRY(check_float(v));
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[2], 0), v.size.size()));
  const TensorView squares = compute(builder, Element(v) * Element(v));
  const std::vector<bool> others = all_but(v.size.size(), dim);
  const TensorView norm = compute(builder, root(fold(builder, "sum", squares, others, true)));
  fill(builder, 0, Element(v) * (Element(g) / norm));
  fill(builder, 1, norm);
  return Status();
}

Status weight_norm_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &gradient = tensor(args[0]), &v = tensor(args[1]), &g = tensor(args[2]),
                   &norm = tensor(args[3]);
  SPYRE_TRY(check_float(v));
  SPYRE_ASSIGN_OR_RETURN(const size_t dim, dimension(integer(args[4]), v.size.size()));
  const TensorView products = compute(builder, Element(gradient) * v);
  const TensorView sums = fold(builder, "sum", products, all_but(v.size.size(), dim), true);
  const TensorView along = compute(builder, Element(sums) / norm);
  fill(builder, 0, (Element(gradient) - Element(v) * (Element(along) / norm)) * (Element(g) / norm));
  fill(builder, 1, along);
  return Status();
}

Status group_norm(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(check_float(x));
  const int64_t batch = integer(args[3]), channels = integer(args[4]), positions = integer(args[5]);
  const int64_t groups = integer(args[6]);
  if (x.size.size() < 2 || groups <= 0 || channels % groups != 0 || batch <= 0 || channels <= 0 ||
      positions <= 0 || channels != x.size[1]) {
    return refuse("channels that are not whole groups");
  }
  const TensorView rows = reshape(builder, x, {batch, groups, channels / groups, positions});
  const std::vector<bool> folded = {false, false, true, true};
  const TensorView mean = fold(builder, "mean", rows, folded, true);
  // In the dtype of x: the card cannot turn columns of 32-bit weights. Every time a mean is taken off, what is left of it
  // is a rounding of the one before.
  TensorView rest = compute(builder, Element(rows) - mean);
  for (int again = 0; again < 2; ++again) {
    rest = centred(builder, rest, folded);
  }
  const TensorView square = fold(builder, "mean", compute(builder, squared(rest)), folded, true);
  const double eps = at_least_held(number(args[7]), x.dtype);
  const TensorView scale = compute(builder, call("rsqrt", {Element(square) + eps}));
  const TensorView out = reshape(builder, compute(builder, Element(rest) * scale), x.size);
  fill(builder, 0, affine(out, x.size.size(), args[1], args[2]));
  fill(builder, 1, reshape(builder, mean, {batch, groups}));
  fill(builder, 2, reshape(builder, scale, {batch, groups}));
  return Status();
}

Status group_norm_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &gradient = tensor(args[0]), &x = tensor(args[1]), &mean = tensor(args[2]),
                   &scale = tensor(args[3]);
  SPYRE_TRY(check_float(x));
  const int64_t batch = integer(args[5]), channels = integer(args[6]), positions = integer(args[7]);
  const int64_t groups = integer(args[8]);
  if (groups <= 0 || channels % groups != 0 || batch <= 0 || channels <= 0 || positions <= 0 ||
      mean.size != std::vector{batch, groups} || scale.size != mean.size) {
    return refuse("channels that are not whole groups");
  }
  const int64_t width = channels / groups;
  const std::vector<bool> last = {false, false, true};
  const auto over_positions = [&](const TensorView& each) {
    return fold(builder, "sum", reshape(builder, each, {batch, channels, positions}), last, false);
  };
  const TensorView slopes = over_positions(compute(builder, Element(gradient) * x)),
                   sums = over_positions(gradient);
  const auto by_group = [&](const TensorView& each) {
    return reshape(builder, each, {batch, groups, width});
  };
  if (builder.wants(0)) {
    const double share = 1.0 / static_cast<double>(positions * width);
    const auto over_channels = [&](const TensorView& each) {
      const TensorView weighted = is_none(args[4]) ? each : compute(builder, Element(each) * tensor(args[4]));
      return fold(builder, "sum", by_group(weighted), last, false);
    };
    const TensorView slope = over_channels(slopes), sum = over_channels(sums);
    const Element own = is_none(args[4]) ? cast(unsqueeze(scale, 2), HostType::kFloat32)
                                         : Element(unsqueeze(scale, 2)) *
                                               reshape(builder, tensor(args[4]), {1, groups, width});
    const TensorView first = unsqueeze(compute(builder, own), 3);
    const Element r = scale;
    const TensorView second = compute(builder, (Element(sum) * mean - slope) * r * r * r * share);
    const TensorView third = compute(builder, call("neg", {second}) * mean - Element(sum) * r * share);
    const std::vector<int64_t> grouped = {batch, groups, width, positions};
    const Element found = Element(reshape(builder, gradient, grouped)) * first +
                          Element(reshape(builder, x, grouped)) * unsqueeze(unsqueeze(second, 2), 3) +
                          unsqueeze(unsqueeze(third, 2), 3);
    fill(builder, 0, reshape(builder, compute(builder, found), x.size));
  }
  const std::vector<bool> over_batch = {true, false, false};
  if (builder.wants(1)) {
    const Element each =
        (Element(by_group(slopes)) - Element(by_group(sums)) * unsqueeze(mean, 2)) * unsqueeze(scale, 2);
    const TensorView found = fold(builder, "sum", compute(builder, each), over_batch, false);
    fill(builder, 1, reshape(builder, found, {channels}));
  }
  if (builder.wants(2)) {
    fold_result(builder, 2, "sum", sums, {true, false}, false);
  }
  return Status();
}

Status batch_norm(Builder& builder, Arguments args, std::string_view op) {
  const TensorView& x = tensor(args[0]);
  SPYRE_TRY(check_float(x));
  const size_t rank = x.size.size(), rest_of_arguments = op == "tracked" ? 5 : 3;
  if (rank < 2) {
    return refuse("an input without channels");
  }
  const bool training = flag(args[rest_of_arguments]);
  const double momentum = number(args[rest_of_arguments + 1]), eps = number(args[rest_of_arguments + 2]);
  const int64_t channels = x.size[1];
  if (!training) {
    if (op != "tracked") {
      return refuse("an input without statistics");
    }
    const TensorView mean = compute(builder, cast(tensor(args[3]), x.dtype));
    const TensorView spread = compute(builder, cast(tensor(args[4]), x.dtype));
    const TensorView scale = compute(builder, 1.0 / root(Element(spread) + eps));
    const Element centre = Element(x) - by_channel(mean, rank);
    fill(builder, 0, affine(centre * by_channel(scale, rank), rank, args[1], args[2]));
    for (const auto& [result, value] :
         {std::pair(size_t{1}, mean), {2, scale}, {3, tensor(args[3])}, {4, tensor(args[4])}}) {
      if (builder.wants(result)) {
        fill(builder, result, value);
      }
    }
    return Status();
  }
  const std::vector<bool> folded = all_but(rank, 1);
  const double count = static_cast<double>(element_count(x)) / static_cast<double>(channels);
  // PyTorch's formula, of what x is without a first mean: the second one is small, and so is its rounding.
  const TensorView first = fold(builder, "mean", x, folded, true);
  const TensorView rest = compute(builder, Element(x) - first);
  const TensorView rows = wide(builder, rest);
  const TensorView centre = centred(builder, centred(builder, rows, folded), folded);
  const TensorView squares = fold(builder, "sum", compute(builder, squared(centre)), folded, true);
  const TensorView spread = compute(builder, cast(Element(squares) * (1 / count), x.dtype));
  const TensorView mean = compute(builder, cast(fold(builder, "mean", rows, folded, true), x.dtype));
  const TensorView scale = compute(builder, call("rsqrt", {Element(spread) + eps}));
  fill(builder, 0, affine((Element(rest) - mean) * scale, rank, args[1], args[2]));
  const auto each = [&](const TensorView& statistic) { return reshape(builder, statistic, {channels}); };
  fill(builder, 1, Element(each(mean)) + each(first));
  fill(builder, 2, each(scale));
  if (op == "tracked") {
    const Element kept = Element(each(mean)) * momentum + Element(tensor(args[3])) * (1 - momentum);
    fill(builder, 3, kept + Element(each(first)) * momentum);
    const Element unbiased = Element(each(spread)) * (count / (count - 1));
    fill(builder, 4, unbiased * momentum + Element(tensor(args[4])) * (1 - momentum));
  }
  return Status();
}

Status batch_norm_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &gradient = tensor(args[0]), &x = tensor(args[1]);
  SPYRE_TRY(check_float(x));
  const size_t rank = x.size.size();
  const bool training = flag(args[7]);
  if (rank < 2 || is_none(args[training ? 5 : 3]) || is_none(args[training ? 6 : 4])) {
    return refuse("an input without statistics");
  }
  const auto cast_each = [&](const Argument& each) { return cast(tensor(each), x.dtype); };
  const TensorView mean = compute(builder, cast_each(args[training ? 5 : 3]));
  const TensorView scale =
      compute(builder, training ? cast_each(args[6]) : call("rsqrt", {cast_each(args[4]) + number(args[8])}));
  const std::vector<bool> folded = all_but(rank, 1);
  const double norm = static_cast<double>(x.size[1]) / static_cast<double>(element_count(x));
  const Element rest = Element(x) - by_channel(mean, rank);
  const TensorView sum = fold(builder, "sum", gradient, folded, false);
  const TensorView product = fold(builder, "sum", compute(builder, Element(gradient) * rest), folded, false);
  if (builder.wants(0)) {
    const TensorView slope = is_none(args[2]) ? scale : compute(builder, Element(scale) * cast_each(args[2]));
    const Element own = by_channel(slope, rank);
    if (training) {
      const TensorView share = compute(builder, Element(product) * norm * (Element(scale) * scale));
      const TensorView level = compute(builder, Element(sum) * norm);
      const Element along = rest * by_channel(share, rank);
      fill(builder, 0, (Element(gradient) - along - by_channel(level, rank)) * own);
    } else {
      fill(builder, 0, Element(gradient) * own);
    }
  }
  if (builder.wants(1)) {
    fill(builder, 1, Element(product) * scale);
  }
  if (builder.wants(2)) {
    fill(builder, 2, sum);
  }
  return Status();
}

Status layer_norm_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &gradient = tensor(args[0]), &x = tensor(args[1]);
  SPYRE_TRY(check_float(x));
  const size_t rank = x.size.size(), inner = integers(args[2]).size();
  if (inner == 0 || inner > rank) {
    return refuse("a norm of more dimensions than the input has");
  }
  const std::vector<bool> outer = dims_before(rank, rank - inner), rows = dims_from(rank, rank - inner);
  const TensorView rest = centred(builder, compute(builder, Element(x) - tensor(args[3])), rows);
  const TensorView normal = compute(builder, Element(rest) * tensor(args[4]));
  if (builder.wants(0)) {
    const TensorView slope =
        is_none(args[5]) ? gradient : compute(builder, Element(gradient) * tensor(args[5]));
    const TensorView share = fold(builder, "mean", compute(builder, Element(slope) * normal), rows, true);
    fill(builder, 0, (Element(centred(builder, slope, rows)) - Element(normal) * share) * tensor(args[4]));
  }
  const auto over_rows = [&](size_t result, const TensorView& each) {
    if (inner == rank) {
      fill(builder, result, each);
    } else {
      fold_result(builder, result, "sum", each, outer, false);
    }
  };
  if (builder.wants(1)) {
    over_rows(1, compute(builder, Element(gradient) * normal));
  }
  if (builder.wants(2)) {
    over_rows(2, gradient);
  }
  return Status();
}

Status rms_norm_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  const TensorView &gradient = tensor(args[0]), &x = tensor(args[1]), &scale = tensor(args[3]);
  SPYRE_TRY(check_float(x));
  const size_t rank = x.size.size(), inner = integers(args[2]).size();
  if (inner == 0 || inner > rank) {
    return refuse("a norm of more dimensions than the input has");
  }
  const std::vector<bool> outer = dims_before(rank, rank - inner), rows = dims_from(rank, rank - inner);
  const TensorView normal = compute(builder, Element(x) * scale);
  if (builder.wants(0)) {
    const TensorView slope =
        is_none(args[4]) ? gradient : compute(builder, Element(gradient) * tensor(args[4]));
    const TensorView share = fold(builder, "mean", compute(builder, Element(slope) * normal), rows, true);
    fill(builder, 0, (Element(slope) - Element(normal) * share) * scale);
  }
  if (builder.wants(1)) {
    const TensorView each = compute(builder, Element(gradient) * normal);
    if (inner == rank) {
      fill(builder, 1, each);
    } else {
      fold_result(builder, 1, "sum", each, outer, false);
    }
  }
  return Status();
}

}  // namespace spyre::forms
