#pragma once

#include "spyre/codegen/superdsc/plan.h"

/// Where bytes are: what is left when the dimensions are known.
namespace spyre::superdsc {

/// Stride, dilation and padding of a window along `i` or `j`, as the artifact states them.
struct WindowAlong {
  int64_t stride = 1, dilation = 1, kernel = 1;
  int64_t pad_front = 0, pad_back = 0;
  int64_t total = 0;  ///< input rows consumed, padding included
  std::string window_dim;
};

/// The window along a dimension, or nothing for ops and dimensions without.
std::optional<WindowAlong> window_along(const SdscPlan& plan, int dim);

/// Whether a tensor is the input that a window moves over.
bool is_windowed_input(const SdscPlan& plan, const Tensor& tensor);

/// Splits of a dimension as one tensor sees it: its own for a shuffle, else the op's.
int64_t split_of(const SdscPlan& plan, const Tensor& tensor, int dim);

/// Byte offset of a slice from the tensor's base, the same for all cores.
int64_t slice_offset_bytes(const SdscPlan& plan, const Tensor& tensor);

/// Byte offset of what a core works on from the start of the slice. Dimensions that are broadcast, reduced or
/// indexed do not contribute, so cores that differ only in those share an address. Zero in LX. Dimensions of
/// runtime extent are left to `core_bytes_per_extent`.
int64_t core_offset_bytes(const SdscPlan& plan, const Tensor& tensor, int64_t core);

/// What a core skips along dimensions of runtime extent: bytes per unit of the extent, by dimension. The
/// slice of a core starts where the extent of the launch, not the largest one, puts it.
std::vector<std::pair<int, int64_t>> core_bytes_per_extent(const SdscPlan& plan, const Tensor& tensor,
                                                           int64_t core);

}  // namespace spyre::superdsc
