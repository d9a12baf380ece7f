#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "spyre/base/units.h"

namespace spyre {

/// The card moves whole sticks: 128 bytes, 128-byte aligned.
inline constexpr Bytes kStickBytes{128};

/// How one element is encoded, on the host or on the card. Order and names are upstream's.
///
/// SEN169_FP16 ("DL16") is the card's own 16-bit float: 1 sign, 6 exponent (bias 31), 9 fraction bits.
/// SENxyz_FPn reads: x sign, y exponent, z fraction bits.
enum class DataFormat : uint8_t {
  SEN169_FP16,
  IEEE_FP32,
  SEN143_FP8,
  SEN152_FP8,
  SEN153_FP9,
  SENINT2,
  SENINT4,
  SENINT8,
  SENINT16,
  SENINT24,
  IEEE_INT64,
  IEEE_INT32,
  SENUINT32,
  SENUINT2,
  IEEE_FP16,
  BOOL,
  BFLOAT16,
  SEN18F_FP24,
  INVALID,
};
inline constexpr int kDataFormatCount = static_cast<int>(DataFormat::INVALID) + 1;

/// Upstream's name, e.g. `SEN169_FP16`.
std::string_view to_string(DataFormat format);
std::optional<DataFormat> data_format_from_name(std::string_view name);

/// Bits one element takes on the card; 0 for INVALID. SENINT24 takes 16, as published.
int bits_of(DataFormat format);

/// Elements in one stick, 1024 / bits; 0 where a stick does not hold a whole number of them, or for INVALID.
int64_t elems_per_stick(DataFormat format);

/// Order of elements inside sticks, other than lane = column mod elems_per_stick.
enum class ElementArrangement : uint8_t {
  STANDARD,
  DL16_TO_FP32,  ///< 16-bit widened on the card: groups of 4 alternate over a pair of fp32 sticks
  QFP8CH,        ///< fp8 channel quantisation
  EXX2,          ///< layernorm partial sums: two values a stick
  FP32_TO_DL16,  ///< fp32 narrowed on the card: groups of 4 of two sticks interleave in one
  QFP8WT,        ///< fp8 weights: sticks of 2 x 64
};

std::string_view to_string(ElementArrangement arrangement);
std::optional<ElementArrangement> element_arrangement_from_name(std::string_view name);

}  // namespace spyre
