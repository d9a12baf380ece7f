#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <string_view>

/// Eager mode: one operator becomes one graph, compiled by the same driver as `torch.compile`'s and kept.
///
///     dispatcher ─ boxed arguments ─ key ─┬─ hit ──────────────────────────────────────────┬─ launch
///                                         └─ miss ─ shapes by PyTorch ─ form ─ compile ────┘
///                                                   any of them refuses: in steps (eager_steps.h), if there are some;
///                                                   else CPU fallback, counted with the reason
///
/// Nothing else here goes through Python or Dynamo. The rows are eager_table.def. With the setting SPYRE_EAGER=0, read once
/// (`eager_enabled`), every row goes to the counted CPU fallback.
namespace spyre::glue {

bool eager_enabled();
inline constexpr const char* kEagerIsOff = "eager kernels are switched off (SPYRE_EAGER=0)";

/// Registers every row of the table.
void register_eager(torch::Library& library, std::string_view name_space);

}  // namespace spyre::glue
