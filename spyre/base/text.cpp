#include "spyre/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <array>

namespace spyre {

std::string list_text(std::span<const int64_t> values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string human_bytes(Bytes bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < kibibytes(1)) {
    return fmt::format("{} B", bytes.count());
  }
  auto value = static_cast<double>(bytes.count());
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::vector<std::string> split_trimmed(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) {
    return parts;
  }
  size_t begin = 0;
  while (true) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (!part.empty() && part.front() == ' ') {
      part.remove_prefix(1);
    }
    while (!part.empty() && part.back() == ' ') {
      part.remove_suffix(1);
    }
    parts.emplace_back(part);
    if (end == text.size()) {
      return parts;
    }
    begin = end + 1;
  }
}

}  // namespace spyre
