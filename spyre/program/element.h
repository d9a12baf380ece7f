#pragma once

#include <cstdint>

#include "spyre/arch/data_format.h"

/// One element of a device tensor: from its bits to the fp32 number the card computes with, and back.
///
/// Widening is exact for every arithmetic format but the 32-bit integers. Narrowing rounds once, by the rule
/// of the format: SEN169 as published (nearest, ties away from zero), fp8 and fp32 to nearest even.
namespace spyre::program {

/// Formats that stand for a number in fp32 arithmetic: SEN169, IEEE fp32, both fp8, the 32-bit integers,
/// int8.
bool is_arithmetic(DataFormat format);

/// The value of an element. `bits` holds it in its low bits. Only for arithmetic formats.
float decode_element(DataFormat format, uint32_t bits);

/// The nearest element. Integers drop the fraction, saturate, and take NaN as 0. Only for arithmetic formats.
uint32_t encode_element(DataFormat format, float value);

}  // namespace spyre::program
