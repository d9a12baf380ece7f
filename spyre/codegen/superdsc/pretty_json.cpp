#include "spyre/codegen/superdsc/pretty_json.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "spyre/base/json.h"

namespace spyre::superdsc {
namespace {

constexpr size_t kLineWidth = 110;
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

bool is_plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

void append_string(const std::string& text, std::string& out) {
  if (is_plain(text)) {
    out.append(1, '"').append(text).append(1, '"');
    return;
  }
  // Provenance may hold any bytes, a file's name for one; those that are no text become U+FFFD.
  out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Appends a value on one line. False, with the text cut short, where `out` would become longer than `limit`.
bool append_flat(const Json& value, size_t limit, std::string& out) {
  if (value.is_string()) {
    append_string(value.get_ref<const std::string&>(), out);
  } else if (value.is_number_integer() && !value.is_number_unsigned()) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value.get<int64_t>()).ptr);
  } else if (!value.is_structured()) {
    out += value.dump();
  } else {
    const bool object = value.is_object();
    out += object ? '{' : '[';
    for (auto item = value.begin(); item != value.end() && out.size() <= limit; ++item) {
      if (item != value.begin()) out += ',';
      if (object) {
        append_string(item.key(), out);
        out += ':';
      }
      if (!append_flat(*item, limit, out)) return false;
    }
    out += object ? '}' : ']';
  }
  return out.size() <= limit;
}

void print(const Json& value, size_t indent, size_t column, std::string& out) {
  const size_t begin = out.size();
  const bool breakable = value.is_structured() && !value.empty();
  const size_t room = kLineWidth - std::min(column, kLineWidth);
  if (append_flat(value, breakable ? begin + room : kNoLimit, out)) return;
  out.resize(begin);
  out += value.is_object() ? '{' : '[';
  for (auto item = value.begin(); item != value.end(); ++item) {
    out += item == value.begin() ? "\n" : ",\n";
    out.append(indent + 2, ' ');
    const size_t name = out.size();
    if (value.is_object()) {
      append_string(item.key(), out);
      out += ": ";
    }
    print(*item, indent + 2, indent + 2 + out.size() - name, out);
  }
  out.append(1, '\n').append(indent, ' ').append(1, value.is_object() ? '}' : ']');
}

}  // namespace

std::string pretty_json(const Json& value) {
  std::string out;
  print(value, 0, 0, out);
  return out + "\n";
}

}  // namespace spyre::superdsc
