#pragma once

#include "spyre/layout/convert.h"

namespace spyre {

/// The vector kernel of a pair for this processor, or nullptr where the reference is all there is.
///
/// A kernel from here gives the bits of the reference for every input, and stops at the same element. Only
/// `convert.cpp` and tests call this; everyone else calls `find_conversion`.
ConvertKernel find_simd_kernel(Encoding src, Encoding dst, Sen169Policy policy);

}  // namespace spyre
