#pragma once

#include <span>
#include <string_view>

#include "spyre/layout/convert.h"

namespace spyre {

/// Vector kernels for the conversions that carry most of the bytes: SEN169 to and from fp16, bfloat16, fp32
/// and bool, and int64 to and from int32.
///
/// A kernel from here gives the bits of the reference for every input, and stops at the same element. The
/// same source is compiled once for each instruction set the compiler knows; which one runs is decided by the
/// processor, when the first conversion is looked up. Only `convert.cpp`, tests and benchmarks include this;
/// everyone else calls `find_conversion`.
struct SimdTarget {
  std::string_view name;  ///< Highway's name of the instruction set: `AVX3`, `AVX2`, `SSE4`, ...
  /// The kernel of a pair, or nullptr where the reference is all there is.
  ConvertKernel (*find)(Encoding src, Encoding dst, Sen169Policy policy);
};

/// The instruction sets that this build has and this processor can run, best first. Never empty.
std::span<const SimdTarget> simd_targets();

}  // namespace spyre
