#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "spyre/base/result.h"

namespace spyre {

/// More than any text that a person or our compiler writes; `read_text` (json.h) reads no more.
inline constexpr int64_t kMostTextBytes = int64_t{64} << 20;

/// Reads a whole file. Refused before anything is read: what is no regular file (a pipe could keep us
/// waiting), and one with more than `most_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, int64_t most_bytes);

}  // namespace spyre
