#include "spyre/runtime/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "spyre/base/settings.h"
#include "spyre/base/text.h"

namespace spyre {
namespace {

std::optional<int> parse_index(const std::string& text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

Result<std::vector<int>> visible_devices() {
  SPYRE_TRY(read_string("FLEX_DEVICE"));
  SPYRE_ASSIGN_OR_RETURN(const int64_t cards, read_int("AIU_WORLD_SIZE"));
  SPYRE_ASSIGN_OR_RETURN(const std::string filter, read_string("SPYRE_DEVICES"));
  if (filter.empty()) {
    std::vector<int> all(static_cast<size_t>(cards));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> kept;
  for (const std::string& entry : split_trimmed(filter, ',')) {
    const std::optional<int> index = parse_index(entry);
    if (!index) {
      return Error(
                 ErrorKind::kInvalidArgument,
                 fmt::format("SPYRE_DEVICES='{}' is not allowed: '{}' is no index of a card", filter, entry))
          .try_instead("indices with commas between them, as in SPYRE_DEVICES=0,2");
    }
    if (*index >= 0 && *index < cards && std::find(kept.begin(), kept.end(), *index) == kept.end()) {
      kept.push_back(*index);
    }
  }
  return kept;
}

}  // namespace spyre
