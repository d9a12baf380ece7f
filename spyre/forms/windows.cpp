#include "spyre/forms/windows.h"

namespace spyre::forms {

PerAxis Sweep::extents(const PerAxis& image) const {
  PerAxis found{};
  for (size_t d = 0; d < found.size(); ++d) {
    const int64_t room = image[d] + 2 * padding[d] - dilation[d] * (window[d] - 1) - 1;
    found[d] = room < 0 ? 0 : room / stride[d] + 1;
  }
  return found;
}

PerAxis Sweep::extents_before(const PerAxis& positions) const {
  PerAxis found{};
  for (size_t d = 0; d < found.size(); ++d) {
    found[d] = (positions[d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (window[d] - 1) + 1;
  }
  return found;
}

std::vector<PerAxis> Sweep::places() const {
  std::vector<PerAxis> found;
  for (int64_t i = 0; i < window[0]; ++i) {
    for (int64_t j = 0; j < window[1]; ++j) {
      found.push_back({i * dilation[0], j * dilation[1]});
    }
  }
  return found;
}

Result<PerAxis> pair_of(const Argument& argument, PerAxis otherwise) {
  const std::vector<int64_t> given = is_none(argument) ? std::vector<int64_t>() : integers(argument);
  constexpr int64_t kMost = 1 << 24;
  for (const int64_t value : given) {
    if (value < 0 || value > kMost) {
      return refuse("a window of no size, or beyond all images");
    }
  }
  switch (given.size()) {
    case 0:
      return otherwise;
    case 1:
      return PerAxis{given[0], given[0]};
    case 2:
      return PerAxis{given[0], given[1]};
    default:
      return refuse("a window of more than two dimensions");
  }
}

TensorView channels_last(const TensorView& x) {
  return permute(x, {0, 2, 3, 1});
}

TensorView channels_first(const TensorView& x) {
  return permute(x, {0, 3, 1, 2});
}

TensorView padded_image(Builder& builder, const TensorView& x, const Around& around, const PerAxis& steps,
                        double value) {
  TensorView image = x;
  for (const size_t d : {size_t{1}, size_t{0}}) {
    const auto& [before, after] = around[d];
    const int64_t length = image.size[d + 1] + before + after;
    const int64_t more = length > 0 ? (steps[d] - length % steps[d]) % steps[d] : 0;
    image = padded(builder, image, d + 1, before, after + more, value);
  }
  return in_rows(builder, image);
}

std::vector<TensorView> taps_of(Builder& builder, const TensorView& x, const Sweep& sweep,
                                const PerAxis& extents) {
  std::vector<TensorView> taps;
  for (const PerAxis& place : sweep.places()) {
    TensorView seen = x;
    for (const size_t d : {size_t{0}, size_t{1}}) {
      if (place[d] + (extents[d] - 1) * sweep.stride[d] >= x.size[d + 1]) {
        builder.fail("its operands have other sizes than its results");
        return {in_rows(builder, x)};
      }
      // As many pixels as there are positions, then set apart: a window that goes in steps is a view, too.
      seen = narrow(seen, d + 1, place[d], extents[d]);
      seen.stride[d + 1] *= sweep.stride[d];
    }
    taps.push_back(in_rows(builder, seen));
  }
  return taps;
}

// Behind every pixel a dimension of `step` slots: the first holds the pixel, the others zero, and each slot is stored in
// whole rows. Merged, without the zeros behind the last pixel, that is the image spread out.
TensorView spread(Builder& builder, TensorView x, const PerAxis& stride) {
  for (const size_t dim : {size_t{1}, size_t{2}}) {
    const int64_t step = stride[dim - 1], extent = x.size[dim];
    if (step <= 1 || extent <= 1) {
      continue;
    }
    std::vector<int64_t> apart = x.size;
    apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(dim) + 1, step);
    const TensorView target = builder.local(apart, x.dtype);
    for (int64_t i = 0; i < step; ++i) {
      const TensorView slot = squeeze(narrow(target, dim + 1, i, 1), dim + 1);
      fill(builder, slot, i == 0 ? Element(x) : cast(0.0, x.dtype));
    }
    std::vector<int64_t> size = x.size;
    size[dim] = extent * step;
    x = in_rows(builder, narrow(reshape(builder, target, size), dim, 0, (extent - 1) * step + 1));
  }
  return x;
}

}  // namespace spyre::forms
