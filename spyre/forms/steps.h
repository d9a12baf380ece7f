#pragma once

#include <span>
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
/// The same into a view.
void fold_into(Builder& builder, const TensorView& target, std::string_view op, const TensorView& x,
               const std::vector<bool>& folded, bool keepdim);
/// The same into a result of the call.
void fold_result(Builder& builder, size_t result, std::string_view op, const TensorView& x,
                 const std::vector<bool>& folded, bool keepdim);

/// Whether elements follow one another row by row.
bool is_contiguous(const TensorView& x);

// The same elements, seen otherwise.
TensorView narrow(TensorView x, size_t dim, int64_t start, int64_t length);
TensorView unsqueeze(TensorView x, size_t dim);
TensorView squeeze(TensorView x, size_t dim);
/// Dimension `i` of the result is dimension `order[i]`.
TensorView permute(const TensorView& x, const std::vector<size_t>& order);
TensorView move_dim(const TensorView& x, size_t from, size_t to);
/// The same element over and over along dimensions of one; dimensions align on the right.
TensorView expand(Builder& builder, TensorView x, const std::vector<int64_t>& size);
/// A view where that can be, else of a copy in rows.
TensorView reshape(Builder& builder, const TensorView& x, std::vector<int64_t> size);
/// Itself where it follows its rows, else a copy that does.
TensorView in_rows(Builder& builder, const TensorView& x);
/// Itself where it has the type, else a copy that has.
TensorView as(Builder& builder, const TensorView& x, HostType dtype);
/// [0, 1, 2, ...]
TensorView counting(Builder& builder, int64_t count, HostType dtype);
/// An index of which every element is a position along a dimension of this size; a run with another one faults.
TensorView existing(Builder& builder, const TensorView& index, int64_t size);
/// Tensors beside one another along a dimension. Those without elements are passed over.
void join(Builder& builder, const TensorView& target, size_t dim, std::span<const TensorView> parts);
TensorView joined(Builder& builder, size_t dim, std::span<const TensorView> parts);
/// Copies a tensor to where it belongs in another. One that lies there already (place-parts) has been written there.
void put(Builder& builder, const TensorView& part, const TensorView& place);
/// Fills `target`, which is longer along a dimension, with x after `before` copies of a number, and with more behind it.
void pad_into(Builder& builder, const TensorView& target, const TensorView& x, size_t dim, int64_t before,
              double value);
/// With so many copies of a number before and behind x along a dimension; negative ones cut.
TensorView padded(Builder& builder, const TensorView& x, size_t dim, int64_t before, int64_t after,
                  double value = 0);
/// The product of two matrices, or of stacks of them that broadcast.
TensorView product(Builder& builder, const TensorView& a, const TensorView& b, HostType dtype);

/// The smallest number that PyTorch has of a float type.
double lowest_of(HostType type);

/// Norms take their statistics in float32: in 16 bits means and squares of rows cancel, overflow or vanish.
TensorView wide(Builder& builder, const TensorView& x);
/// What is left of x without its mean.
TensorView centred(Builder& builder, const TensorView& x, const std::vector<bool>& folded);
/// Every dimension but one; one alone; the first `count`; those from `count` on.
std::vector<bool> all_but(size_t rank, size_t dim);
std::vector<bool> only(size_t rank, size_t dim);
std::vector<bool> dims_before(size_t rank, size_t count);
std::vector<bool> dims_from(size_t rank, size_t count);

}  // namespace spyre::forms
