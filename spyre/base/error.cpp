#include "spyre/base/error.h"

#include <fmt/format.h>

namespace spyre {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return "invalid argument";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kOutOfMemory:
      return "out of memory";
    case ErrorKind::kOutOfRange:
      return "out of range";
    case ErrorKind::kUseAfterFree:
      return "use after free";
    case ErrorKind::kNotFound:
      return "not found";
    case ErrorKind::kParse:
      return "parse error";
    case ErrorKind::kBadFork:
      return "bad fork";
    case ErrorKind::kDeviceFault:
      return "device fault";
    case ErrorKind::kShutdown:
      return "shut down";
  }
  return "unknown";
}

Error&& Error::note(std::string text) && {
  notes.push_back(std::move(text));
  return std::move(*this);
}

Error&& Error::try_instead(std::string text) && {
  hint = std::move(text);
  return std::move(*this);
}

Error&& Error::about(ErrorNode culprit) && {
  node = std::move(culprit);
  return std::move(*this);
}

Error&& Error::of_extent(std::string source) && {
  extents.push_back(std::move(source));
  return std::move(*this);
}

Error&& Error::at_item(size_t position) && {
  item = position;
  return std::move(*this);
}

std::string Error::to_string() const {
  std::string out = message;
  if (node && !node->aten.empty()) {
    out += "\n  note it comes from " + node->aten;
  }
  if (node && !node->source.empty()) {
    out += "\n  note written at " + node->source;
  }
  for (const std::string& line : notes) {
    out += "\n  note " + line;
  }
  if (!hint.empty()) {
    out += "\n  try  " + hint;
  }
  return out;
}

void detail::check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: internal check failed: {}: {}", file, line, condition, message));
}

}  // namespace spyre
