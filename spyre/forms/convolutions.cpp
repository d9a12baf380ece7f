// Convolutions as one product: what a filter sees at a place lies side by side, and so do its weights. The gradient of
// an image is a convolution, too: of the result's gradient with zeros between its pixels, by the same filters read
// backwards. That is also what a transposed convolution means.

#include <algorithm>

#include "spyre/forms/forms.h"
#include "spyre/forms/windows.h"

namespace spyre::forms {
namespace {

constexpr int64_t kSeenAtMost = int64_t{1} << 27;  // elements, each as often as a filter sees it

/// A convolution over two dimensions.
struct Filters {
  Sweep sweep;
  int64_t groups = 1;

  Filters of_one_group() const { return {.sweep = sweep, .groups = 1}; }
  /// The part of a group along a dimension.
  TensorView part(const TensorView& x, size_t dim, int64_t group) const {
    const int64_t extent = x.size[dim] / groups;
    return narrow(x, dim, group * extent, extent);
  }
};

/// Whether every channel is filtered by itself, once.
bool is_depthwise(const TensorView& x, const TensorView& weight, int64_t groups) {
  return groups > 1 && groups == x.size[1] && groups == weight.size[0] && weight.size[1] == 1;
}

TensorView stacked(Builder& builder, const std::vector<TensorView>& taps) {
  const size_t dim = taps[0].size.size() - 1;
  std::vector<int64_t> size = taps[0].size;
  size.insert(size.end() - 1, static_cast<int64_t>(taps.size()));
  const TensorView target = builder.local(size, taps[0].dtype);
  for (size_t i = 0; i < taps.size(); ++i) {
    fill(builder, squeeze(narrow(target, dim, static_cast<int64_t>(i), 1), dim), taps[i]);
  }
  return target;
}

/// What filters [results, channels, height, width] make of what their taps see, into [images, results, ...].
void filter(Builder& builder, const TensorView& target, const std::vector<TensorView>& taps,
            const TensorView& weight, const TensorView* bias, bool depthwise) {
  const std::vector<int64_t>& seen = taps[0].size;
  const auto count = static_cast<int64_t>(taps.size());
  const int64_t channels = seen[3];
  const TensorView by_tap = in_rows(builder, permute(weight, {2, 3, 1, 0}));
  TensorView out;
  if (depthwise) {
    const TensorView weights = reshape(builder, by_tap, {count, channels});
    const TensorView products = compute(builder, Element(stacked(builder, taps)) * weights);
    out = fold(builder, "sum", products, only(5, 3), /*keepdim=*/false);
  } else {
    const int64_t results = weight.size[0];
    const TensorView rows =
        reshape(builder, joined(builder, 3, taps), {seen[0], seen[1] * seen[2], count * channels});
    const TensorView weights = reshape(builder, by_tap, {1, count * channels, results});
    out = reshape(builder, product(builder, rows, weights, rows.dtype), {seen[0], seen[1], seen[2], results});
  }
  out = bias == nullptr ? out : compute(builder, Element(out) + *bias);
  fill(builder, target, channels_first(out));
}

void add_bias(Builder& builder, const TensorView& target, const TensorView& x, const TensorView* bias) {
  fill(builder, target, bias == nullptr ? Element(x) : Element(x) + unsqueeze(unsqueeze(*bias, 1), 2));
}

void convolve(Builder& builder, const TensorView& target, const TensorView& x, const TensorView& weight,
              const TensorView* bias, const Filters& filters) {
  const bool depthwise = is_depthwise(x, weight, filters.groups);
  if (filters.groups > 1 && !depthwise) {
    const TensorView out = builder.local(target.size, target.dtype);
    for (int64_t g = 0; g < filters.groups; ++g) {
      convolve(builder, filters.part(out, 1, g), filters.part(x, 1, g), filters.part(weight, 0, g), nullptr,
               filters.of_one_group());
    }
    add_bias(builder, target, out, bias);
    return;
  }
  const PerAxis& padding = filters.sweep.padding;
  const Around around = {std::pair(padding[0], padding[0]), {padding[1], padding[1]}};
  const TensorView image = padded_image(builder, channels_last(x), around, filters.sweep.stride);
  const std::vector<TensorView> taps =
      taps_of(builder, image, filters.sweep, {target.size[2], target.size[3]});
  filter(builder, target, taps, weight, bias, depthwise);
}

/// A weight is [channels of x, of the result, ...]; `more` pixels at the end were seen by no window.
void convolve_transposed(Builder& builder, const TensorView& target, const TensorView& x,
                         const TensorView& weight, const TensorView* bias, const Filters& filters,
                         const PerAxis& more) {
  const bool depthwise = is_depthwise(x, weight, filters.groups);
  if (filters.groups > 1 && !depthwise) {
    const TensorView out = builder.local(target.size, target.dtype);
    for (int64_t g = 0; g < filters.groups; ++g) {
      convolve_transposed(builder, filters.part(out, 1, g), filters.part(x, 1, g), filters.part(weight, 0, g),
                          nullptr, filters.of_one_group(), more);
    }
    add_bias(builder, target, out, bias);
    return;
  }
  Around around;
  Sweep sweep = filters.sweep;
  for (size_t d = 0; d < around.size(); ++d) {
    const int64_t reach = sweep.dilation[d] * (sweep.window[d] - 1) - sweep.padding[d];
    around[d] = {reach, reach + more[d]};
  }
  const TensorView apart = spread(builder, channels_last(x), sweep.stride);
  sweep.stride = {1, 1};
  std::vector<TensorView> taps =
      taps_of(builder, padded_image(builder, apart, around), sweep, {target.size[2], target.size[3]});
  std::reverse(taps.begin(), taps.end());
  filter(builder, target, taps, depthwise ? weight : permute(weight, {1, 0, 2, 3}), bias, depthwise);
}

/// For each pair of channels and each tap a sum over all places.
void weight_gradient(Builder& builder, const TensorView& target, const TensorView& gradient,
                     const TensorView& x, const Filters& filters) {
  const bool depthwise =
      filters.groups > 1 && filters.groups == x.size[1] && filters.groups == gradient.size[1];
  if (filters.groups > 1 && !depthwise) {
    for (int64_t g = 0; g < filters.groups; ++g) {
      weight_gradient(builder, filters.part(target, 0, g), filters.part(gradient, 1, g),
                      filters.part(x, 1, g), filters.of_one_group());
    }
    return;
  }
  const PerAxis& padding = filters.sweep.padding;
  const Around around = {std::pair(padding[0], padding[0]), {padding[1], padding[1]}};
  const TensorView image = padded_image(builder, channels_last(x), around, filters.sweep.stride);
  const std::vector<TensorView> taps =
      taps_of(builder, image, filters.sweep, {gradient.size[2], gradient.size[3]});
  const TensorView slopes = in_rows(builder, channels_last(gradient));
  const auto count = static_cast<int64_t>(taps.size());
  if (depthwise) {
    const TensorView sums = builder.local({target.size[0], count}, target.dtype);
    for (int64_t t = 0; t < count; ++t) {
      const TensorView products = compute(builder, Element(taps[static_cast<size_t>(t)]) * slopes);
      const TensorView sum = fold(builder, "sum", products, {true, true, true, false}, /*keepdim=*/false);
      fill(builder, squeeze(narrow(sums, 1, t, 1), 1), sum);
    }
    fill(builder, target, reshape(builder, sums, target.size));
    return;
  }
  const int64_t channels = target.size[1], results = target.size[0];
  const int64_t places = element_count(slopes) / results;
  const TensorView seen = reshape(builder, joined(builder, 3, taps), {places, count * channels});
  const TensorView sums =
      product(builder, permute(seen, {1, 0}), reshape(builder, slopes, {places, results}), target.dtype);
  const TensorView by_tap = reshape(builder, sums, {target.size[2], target.size[3], channels, results});
  fill(builder, target, permute(by_tap, {3, 2, 0, 1}));
}

/// The arguments of a convolution over one dimension or two; one is the second of two, of which the first has one row.
struct Convolution {
  TensorView x, weight;
  Filters filters;
  bool transposed = false, one_dimension = false;
  PerAxis output_padding{};

  TensorView image(const TensorView& tensor) const { return one_dimension ? unsqueeze(tensor, 2) : tensor; }
};

/// (x, weight), and from `first` on stride, padding, dilation, transposed, output_padding, groups.
Result<Convolution> read_convolution(const TensorView& x, const TensorView& weight, Arguments args,
                                     size_t first) {
  const size_t rank = x.size.size();
  if (x.dtype != weight.dtype || !is_float(x.dtype) || (rank != 3 && rank != 4) ||
      weight.size.size() != rank || element_count(x) == 0 || element_count(weight) == 0) {
    return refuse("a convolution of other tensors than images of one or two dimensions");
  }
  SPYRE_TRY(arithmetic_type(x.dtype));
  Convolution found;
  found.transposed = flag(args[first + 3]);
  found.one_dimension = rank == 3;
  found.x = found.image(x);
  found.weight = found.image(weight);
  Sweep& sweep = found.filters.sweep;
  sweep.window = {found.weight.size[2], found.weight.size[3]};
  SPYRE_ASSIGN_OR_RETURN(sweep.stride, pair_of(args[first], {1, 1}));
  SPYRE_ASSIGN_OR_RETURN(sweep.padding, pair_of(args[first + 1], {0, 0}));
  SPYRE_ASSIGN_OR_RETURN(sweep.dilation, pair_of(args[first + 2], {1, 1}));
  SPYRE_ASSIGN_OR_RETURN(found.output_padding, pair_of(args[first + 4], {0, 0}));
  found.filters.groups = integer(args[first + 5]);
  if (found.one_dimension) {
    sweep.stride[0] = sweep.dilation[0] = 1;
    sweep.padding[0] = found.output_padding[0] = 0;
  }
  const int64_t groups = found.filters.groups;
  const int64_t channels = found.transposed ? weight.size[0] : weight.size[1] * groups;
  if (groups < 1 || sweep.stride[0] < 1 || sweep.stride[1] < 1 || sweep.dilation[0] < 1 ||
      sweep.dilation[1] < 1 || channels != x.size[1] || weight.size[0] % groups != 0) {
    return refuse("filters for other channels than the images have");
  }
  const PerAxis image = {found.x.size[2], found.x.size[3]};
  PerAxis places = found.transposed ? sweep.extents_before(image) : sweep.extents(image);
  double seen = static_cast<double>(x.size[0] * x.size[1]);
  for (size_t d = 0; d < places.size(); ++d) {
    places[d] += found.transposed ? found.output_padding[d] : 0;
    seen *= static_cast<double>(std::max<int64_t>(places[d], 0)) * static_cast<double>(sweep.window[d]);
  }
  if (seen <= 0 || seen > static_cast<double>(kSeenAtMost)) {
    return refuse("a convolution that sees nothing, or too much");
  }
  return found;
}

}  // namespace

Status convolution(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Convolution found,
                         read_convolution(tensor(args[0]), tensor(args[1]), args, 3));
  if (builder.result().size.size() != tensor(args[0]).size.size()) {
    return refuse("a convolution into other dimensions");
  }
  const TensorView target = found.image(builder.result());
  const TensorView* bias = is_none(args[2]) ? nullptr : &tensor(args[2]);
  if (found.transposed) {
    convolve_transposed(builder, target, found.x, found.weight, bias, found.filters, found.output_padding);
  } else {
    convolve(builder, target, found.x, found.weight, bias, found.filters);
  }
  return Status();
}

Status convolution_backward(Builder& builder, Arguments args, std::string_view /*op*/) {
  SPYRE_ASSIGN_OR_RETURN(const Convolution found,
                         read_convolution(tensor(args[1]), tensor(args[2]), args, 4));
  if (tensor(args[0]).size.size() != tensor(args[1]).size.size()) {
    return refuse("a gradient of other dimensions");
  }
  const TensorView gradient = in_rows(builder, found.image(tensor(args[0])));
  const Filters& filters = found.filters;
  if (builder.wants(0) && found.transposed) {
    convolve(builder, found.image(builder.result(0)), gradient, found.weight, nullptr, filters);
  } else if (builder.wants(0)) {
    const PerAxis seen = filters.sweep.extents_before({gradient.size[2], gradient.size[3]});
    const PerAxis unseen = {found.x.size[2] - seen[0], found.x.size[3] - seen[1]};
    convolve_transposed(builder, found.image(builder.result(0)), gradient, found.weight, nullptr, filters,
                        unseen);
  }
  if (builder.wants(1)) {
    const TensorView &small = found.transposed ? found.x : gradient,
                     &large = found.transposed ? gradient : found.x;
    weight_gradient(builder, found.image(builder.result(1)), small, large, filters);
  }
  if (builder.wants(2)) {
    fold_result(builder, 2, "sum", gradient, all_but(gradient.size.size(), 1), /*keepdim=*/false);
  }
  return Status();
}

}  // namespace spyre::forms
