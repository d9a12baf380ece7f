#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "glue/eager_call.h"

/// Calls whose tensors hold positions: what an eager call looks at in their values, and the calls that other operators
/// answer.
namespace spyre::glue {

/// Whether the positions that a call reads or writes at are inside its tensor. Looks at their values, so it
/// waits for them; of forms without positions it is true. A call that fails goes to the CPU, which says so
/// in PyTorch's words: on the card it would be a fault, and the end of the stream.
bool positions_fit(const forms::FormRow& form, Arguments args);

/// x[mask] for a mask of all of x or of its rows, whose result is as long as the values say: elements selected, or rows at
/// the positions selected. None for other calls.
std::optional<at::Tensor> index_by_mask(const forms::FormRow& form, Arguments args);

}  // namespace spyre::glue
