#include "spyre/codegen/superdsc/pretty_json.h"

#include <algorithm>

namespace spyre::superdsc {
namespace {

constexpr size_t kLineWidth = 110;

// Provenance may hold any bytes, a file's name for one; those that are no text become U+FFFD.
std::string flat_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Whether the flat text has at most `room` characters; takes them off. Looks no further than that.
bool fits(const Json& value, size_t& room) {
  const auto take = [&room](size_t characters) {
    if (characters > room) return false;
    room -= characters;
    return true;
  };
  if (!value.is_structured()) return take(flat_text(value).size());
  if (!take(value.empty() ? 2 : value.size() + 1)) return false;  // brackets and commas
  for (const auto& [key, item] : value.items()) {
    if (value.is_object() && !take(flat_text(key).size() + 1)) return false;
    if (!fits(item, room)) return false;
  }
  return true;
}

void print(const Json& value, size_t indent, size_t column, std::string& out) {
  size_t room = kLineWidth - std::min(column, kLineWidth);
  if (!value.is_structured() || value.empty() || fits(value, room)) {
    out += flat_text(value);
    return;
  }
  const std::string inner(indent + 2, ' ');
  out += value.is_object() ? '{' : '[';
  const char* separator = "\n";
  for (const auto& [key, item] : value.items()) {
    out += separator + inner;
    separator = ",\n";
    const std::string name = value.is_object() ? flat_text(key) + ": " : "";
    out += name;
    print(item, indent + 2, inner.size() + name.size(), out);
  }
  out += '\n' + std::string(indent, ' ') + (value.is_object() ? '}' : ']');
}

}  // namespace

std::string pretty_json(const Json& value) {
  std::string out;
  print(value, 0, 0, out);
  return out + "\n";
}

}  // namespace spyre::superdsc
