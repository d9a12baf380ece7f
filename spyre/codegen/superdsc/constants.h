#pragma once

#include "spyre/arch/data_format.h"
#include "spyre/base/result.h"

namespace spyre::superdsc {

inline constexpr const char* kMaskConstant = "samv-maskvalue";

/// The bit pattern of a scalar in the card's format, as op constants travel.
///
/// SEN169_FP16 follows the published rule for this format: round to nearest with ties away from zero, no
/// subnormals (what is below the smallest exponent becomes zero), and 0x7FFF, the code for "no number", above
/// the largest finite value. IEEE_FP32 is the bits of the float, IEEE_INT32 the rounded integer.
Result<uint32_t> encode_constant(double value, DataFormat format);

}  // namespace spyre::superdsc
