#pragma once

#include "spyre/forms/steps.h"

/// Scaled dot-product attention as a product, a softmax and a product, over the batch axes as they are.
///
/// Scores of 16-bit attention stay float32 between the products: unscaled ones reach hundreds, where 16 bits round to
/// multiples of 0.5 and a softmax makes per cents of that.
///
/// With g query heads for each key head, heads [h*g] become [h, g] and keys get an axis of one: products broadcast,
/// and shared heads are not copied.
namespace spyre::forms {

struct AttentionCall {
  TensorView query, key, value;    ///< [..., heads, rows, width]
  std::optional<TensorView> mask;  ///< truth values: where it may look; floats: what scores get added
  bool causal = false;
  std::optional<double> scale;  ///< none: one over the root of the width
};

/// Fills `target`, [..., heads, rows, width of the values].
Status attend(Builder& builder, const TensorView& target, const AttentionCall& call);

}  // namespace spyre::forms
