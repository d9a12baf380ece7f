#include "spyre/arch/data_format.h"

#include <array>

namespace spyre {
namespace {

struct FormatRow {
  std::string_view name;
  int bits;
};

// In the order of the enum.
constexpr std::array<FormatRow, kDataFormatCount> kFormats = {{
    {"SEN169_FP16", 16}, {"IEEE_FP32", 32},  {"SEN143_FP8", 8},   {"SEN152_FP8", 8}, {"SEN153_FP9", 9},
    {"SENINT2", 2},      {"SENINT4", 4},     {"SENINT8", 8},      {"SENINT16", 16},  {"SENINT24", 16},
    {"IEEE_INT64", 64},  {"IEEE_INT32", 32}, {"SENUINT32", 32},   {"SENUINT2", 2},   {"IEEE_FP16", 16},
    {"BOOL", 8},         {"BFLOAT16", 16},   {"SEN18F_FP24", 24}, {"INVALID", 0},
}};

constexpr std::array<std::string_view, 6> kArrangements = {"STANDARD", "DL16_TO_FP32", "QFP8CH",
                                                           "EXX2",     "FP32_TO_DL16", "QFP8WT"};

}  // namespace

std::string_view to_string(DataFormat format) {
  return kFormats[static_cast<size_t>(format)].name;
}

std::optional<DataFormat> data_format_from_name(std::string_view name) {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].name == name) {
      return static_cast<DataFormat>(i);
    }
  }
  return std::nullopt;
}

int bits_of(DataFormat format) {
  return kFormats[static_cast<size_t>(format)].bits;
}

int64_t elems_per_stick(DataFormat format) {
  const int64_t stick_bits = kStickBytes.count() * 8;
  const int bits = bits_of(format);
  return bits != 0 && stick_bits % bits == 0 ? stick_bits / bits : 0;
}

std::string_view to_string(ElementArrangement arrangement) {
  return kArrangements[static_cast<size_t>(arrangement)];
}

std::optional<ElementArrangement> element_arrangement_from_name(std::string_view name) {
  for (size_t i = 0; i < kArrangements.size(); ++i) {
    if (kArrangements[i] == name) {
      return static_cast<ElementArrangement>(i);
    }
  }
  return std::nullopt;
}

}  // namespace spyre
