#pragma once

#include "glue/eager_steps.h"

/// x[i, j, ...] with several tensors of positions, each of which varies along axes of its own: parts, rows and columns
/// of x. Eager calls look at positions anyway, to raise for those that do not exist; what they see also tells that
/// positions count up, as those of a model's masks do:
///
///     mask[rows, columns]     rows [2, 1, 1, 1] = 0, 1     columns [1, 1, 1, 12] = 0 .. 11     mask[:, None, None, :]
///
/// Nothing for other calls: positions that vary together are elements or rows by number, which the form says.
namespace spyre::glue {

std::optional<Tensors> index_by_axes(Arguments args);

}  // namespace spyre::glue
