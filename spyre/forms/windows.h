#pragma once

#include <array>
#include <utility>

#include "spyre/forms/steps.h"

/// What windows that go over images see. Channels come last: the pixels at one place of every window are then a slice
/// of the image, whose rows are whole.
namespace spyre::forms {

/// One number for each of the two dimensions: rows, columns.
using PerAxis = std::array<int64_t, 2>;

/// How a window goes over images [..., height, width].
struct Sweep {
  PerAxis window{}, stride{}, padding{}, dilation{};

  /// How many positions the window has along each dimension: 3 pixels wide, in 8 of them, 6.
  PerAxis extents(const PerAxis& image) const;
  /// The other way: how long the image was that has so many positions.
  PerAxis extents_before(const PerAxis& positions) const;
  /// Distances from the first pixel of a window to the others, row by row.
  std::vector<PerAxis> places() const;
};

/// A list of one or two numbers; one stands for both.
Result<PerAxis> pair_of(const Argument& argument, PerAxis otherwise);

// [images, channels, height, width] as [images, height, width, channels], and back.
TensorView channels_last(const TensorView& x);
TensorView channels_first(const TensorView& x);

/// So many pixels before and behind rows and columns; negative ones cut.
using Around = std::array<std::pair<int64_t, int64_t>, 2>;
/// In rows, which what is in another order is copied to once. Rows and columns are as many as whole steps take, so that
/// windows that go in steps can be read: a dimension of 19 has no groups of 2.
TensorView padded_image(Builder& builder, const TensorView& x, const Around& around,
                        const PerAxis& steps = {1, 1}, double value = 0);

/// By place in the window the pixels that are seen there, one for each of `extents` positions, of images with their
/// channels last.
std::vector<TensorView> taps_of(Builder& builder, const TensorView& x, const Sweep& sweep,
                                const PerAxis& extents);

/// Zeros between the pixels: [1, 2, 3] with stride 2 is [1, 0, 2, 0, 3].
TensorView spread(Builder& builder, TensorView x, const PerAxis& stride);

}  // namespace spyre::forms
