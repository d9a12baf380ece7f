#include "spyre/base/json.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "spyre/base/file.h"

namespace spyre {

Result<Json> parse_json(std::string_view text, std::string_view origin) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    return Error(ErrorKind::kParse, fmt::format("{}: not valid JSON: {}", origin, error.what()));
  }
}

Result<std::string> read_text(const std::filesystem::path& path) {
  return read_file(path, kMostTextBytes);
}

Result<Json> read_json(const std::filesystem::path& path) {
  SPYRE_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  return parse_json(text, path.string());
}

Status write_text(const std::filesystem::path& path, std::string_view text) {
  static std::atomic<int> number = 0;  // two threads may write one file
  const std::filesystem::path temporary = fmt::format("{}.tmp{}_{}", path.string(), ::getpid(), ++number);
  const auto give_up = [&](Error error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    return error;
  };
  std::ofstream out(temporary, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) return give_up(Error(ErrorKind::kNotFound, fmt::format("{}: writing failed", path.string())));
  std::error_code failure;
  std::filesystem::rename(temporary, path, failure);
  if (failure) {
    return give_up(Error(ErrorKind::kNotFound,
                         fmt::format("{}: cannot be put in place: {}", path.string(), failure.message())));
  }
  return Status();
}

}  // namespace spyre
