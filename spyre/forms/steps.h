#pragma once

#include <string_view>
#include <vector>

#include "spyre/forms/formula.h"

/// The steps that operators of several steps are made of: folds and views. What lies between two steps is a buffer of its
/// own (`compute` in formula.h makes one from arithmetic), so that a form reads as the formula it is:
///
///     const TensorView mean = fold(builder, "mean", x, dims, true);
///     const TensorView rest = compute(builder, Element(x) - mean);
///
/// What cannot be done is remembered by the builder, as everything that does not fit.
namespace spyre::forms {

/// Folds the dimensions that `folded` names by `op`: sum, mean, max, min, prod, any, all. Of the type of x, any and all of
/// bool.
TensorView fold(Builder& builder, std::string_view op, const TensorView& x, const std::vector<bool>& folded,
                bool keepdim);
/// The same into a result of the call.
void fold_result(Builder& builder, size_t result, std::string_view op, const TensorView& x,
                 const std::vector<bool>& folded, bool keepdim);

/// Whether elements follow one another row by row.
bool is_contiguous(const TensorView& x);

// The same elements, seen otherwise.
TensorView narrow(TensorView x, size_t dim, int64_t start, int64_t length);
TensorView unsqueeze(TensorView x, size_t dim);
/// A view where that can be, else of a copy in rows.
TensorView reshape(Builder& builder, const TensorView& x, std::vector<int64_t> size);

/// Norms take their statistics in float32: in 16 bits means and squares of rows cancel, overflow or vanish.
TensorView wide(Builder& builder, const TensorView& x);
/// What is left of x without its mean.
TensorView centred(Builder& builder, const TensorView& x, const std::vector<bool>& folded);
/// Every dimension but one; the first `count`; those from `count` on.
std::vector<bool> all_but(size_t rank, size_t dim);
std::vector<bool> dims_before(size_t rank, size_t count);
std::vector<bool> dims_from(size_t rank, size_t count);

}  // namespace spyre::forms
