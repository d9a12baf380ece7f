#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/units.h"

namespace spyre {

/// `[4, 1024, 64]`, the way sizes are printed everywhere.
std::string list_text(std::span<const int64_t> values);

/// A byte count for people: `391 B`, `1.50 MiB`, `128.00 GiB`.
std::string human_bytes(Bytes bytes);

/// Splits at each separator and trims blanks; an empty text has no parts.
std::vector<std::string> split_trimmed(std::string_view text, char separator);

}  // namespace spyre
