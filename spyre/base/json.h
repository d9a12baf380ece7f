#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "spyre/base/json_fwd.h"
#include "spyre/base/ordered_map.h"
#include "spyre/base/result.h"

namespace spyre {

/// Parses JSON text. `origin` (a file name, say) starts the message of a failure.
Result<Json> parse_json(std::string_view text, std::string_view origin);

/// Reads and parses a file.
Result<Json> read_json(const std::filesystem::path& path);

/// Reads a whole file.
Result<std::string> read_text(const std::filesystem::path& path);

/// Writes a whole file, by way of a temporary name and a rename: readers see the old content or the new.
Status write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace spyre
