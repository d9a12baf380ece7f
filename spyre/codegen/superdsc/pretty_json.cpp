#include "spyre/codegen/superdsc/pretty_json.h"

namespace spyre::superdsc {
namespace {

constexpr size_t kLineWidth = 110;

// Provenance may hold any bytes, a file's name for one; those that are no text become U+FFFD.
std::string flat_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void print(const Json& value, size_t indent, size_t column, std::string& out) {
  const std::string flat = flat_text(value);
  if (!value.is_structured() || value.empty() || column + flat.size() <= kLineWidth) {
    out += flat;
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
