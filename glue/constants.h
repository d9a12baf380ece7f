#pragma once

#include <ATen/core/Tensor.h>

#include "spyre/driver/compile.h"

namespace spyre::glue {

/// The tensor behind a constant of a kernel: its fill, in its layout, on one card. Kernels that live at the same time
/// share it; it goes with the last of them, so there are never more constants than kernels need. Any thread.
///
/// Constants are the same when their bits are: NaN is one constant, and -0 is not 0.
at::Tensor constant_tensor(const KernelArgument& constant, c10::DeviceIndex device);

}  // namespace spyre::glue
