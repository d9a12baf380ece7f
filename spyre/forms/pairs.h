#pragma once

#include "spyre/forms/steps.h"

/// Elements read and written at positions of their own (scatters.cpp): every position along a dimension is compared with
/// every index, so there is a limit to both.
namespace spyre::forms {

/// Whether `gather` along the dimension takes these.
bool can_gather(const TensorView& x, size_t dim, const TensorView& index);
/// Whether `scatter` along the dimension takes these, of a number or of as many values.
bool can_scatter(const TensorView& x, size_t dim, const TensorView& index);

}  // namespace spyre::forms
