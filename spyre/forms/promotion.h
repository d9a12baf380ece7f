#pragma once

#include <optional>
#include <span>

#include "spyre/base/result.h"
#include "spyre/graph/call.h"

/// Which type PyTorch computes in, over the types a tensor on the card may have.
///
/// Operands are of three categories. Within one, the wider type wins; a lower category counts only where it is of a
/// higher kind (float over integer over bool):
///
///     float16 [4] * float32 []     float16      a tensor with dimensions before one without
///     int32 [4] * 2                int32        any tensor before Python's own numbers
///     int32 [4] * 2.5              float32      the default float: a float among integers
namespace spyre::forms {

struct Promoted {
  enum class Category : uint8_t { kDimensioned, kZeroDimensional, kNumber };
  Category category = Category::kDimensioned;
  std::optional<HostType> dtype;             ///< of a tensor
  Number::Kind kind = Number::Kind::kFloat;  ///< of a number
};

/// Refused: pairs that PyTorch does not promote, which are 8-bit floats beside others.
Result<HostType> promote(std::span<const Promoted> operands, HostType default_float);
/// Of two tensors of one category.
Result<HostType> promote(HostType a, HostType b);

}  // namespace spyre::forms
