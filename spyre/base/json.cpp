#include "spyre/base/json.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace spyre {

Result<Json> parse_json(std::string_view text, std::string_view origin) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    return Error(ErrorKind::kParse, fmt::format("{}: not valid JSON: {}", origin, error.what()));
  }
}

Result<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return Error(ErrorKind::kNotFound, fmt::format("{}: cannot be opened for reading", path.string()));
  }
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) {
    return Error(ErrorKind::kNotFound, fmt::format("{}: reading failed", path.string()));
  }
  return std::move(text).str();
}

Result<Json> read_json(const std::filesystem::path& path) {
  SPYRE_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  return parse_json(text, path.string());
}

Status write_text(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path temporary = path.string() + fmt::format(".tmp{}", ::getpid());
  std::ofstream out(temporary, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) {
    return Error(ErrorKind::kNotFound, fmt::format("{}: writing failed", temporary.string()));
  }
  std::error_code failure;
  std::filesystem::rename(temporary, path, failure);
  if (failure) {
    return Error(ErrorKind::kNotFound,
                 fmt::format("{}: cannot be put in place: {}", path.string(), failure.message()));
  }
  return Status();
}

}  // namespace spyre
