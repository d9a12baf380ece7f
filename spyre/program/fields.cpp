#include "spyre/program/fields.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <map>

#include "spyre/base/json.h"
#include "spyre/program/refusal.h"

namespace spyre::program {
namespace {

// Enough of a value to recognise it in a message.
std::string shortened(const Json& json) {
  constexpr size_t kLongest = 60;
  if (json.is_object()) {
    return fmt::format("an object of {} members", json.size());
  }
  if (json.is_array() && json.size() > 8) {
    return fmt::format("a list of {} elements", json.size());
  }
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongest) {
    text.resize(kLongest);
    text += "...";
  }
  return text;
}

// Nesting of brackets outside strings, at most limit + 1.
int nesting_depth(std::string_view text, int limit) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size() && deepest <= limit; ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

// Extends `path` by the way from a value to one inside it; false, with the path as it was, if it is not there.
bool find_path(const Json& from, const Json* to, std::string& path) {
  if (&from == to) return true;
  const size_t length = path.size();
  for (auto it = from.begin(); from.is_structured() && it != from.end(); ++it) {
    if (from.is_object()) {
      path += (length == 0 ? "" : ".") + it.key();
    } else {
      path += fmt::format("[{}]", it - from.begin());
    }
    if (find_path(*it, to, path)) return true;
    path.resize(length);
  }
  return false;
}

}  // namespace

std::optional<int64_t> parse_decimal(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || text.empty()) {
    return std::nullopt;
  }
  return value;
}

Result<Json> parse_bounded_json(std::string_view text, std::string_view file) {
  if (text.size() > kMaxJsonBytes) {
    return Error(ErrorKind::kParse,
                 fmt::format("{}: found {} bytes, allowed: at most {}", file, text.size(), kMaxJsonBytes));
  }
  if (nesting_depth(text, kMaxJsonDepth) > kMaxJsonDepth) {
    return Error(ErrorKind::kParse, fmt::format("{}: found brackets nested more than {} deep, allowed: {}",
                                                file, kMaxJsonDepth, kMaxJsonDepth));
  }
  return parse_json(text, file);
}

std::string Field::path() const {
  std::string path;
  find_path(*from_, json_, path);
  return path;
}

Error Field::refuse(std::string_view found, std::string_view allowed, ErrorKind kind) const {
  const std::string where = path();
  return refusal(file_, where.empty() ? "root" : where, found, allowed, kind);
}

Error Field::refuse_value(std::string_view allowed) const {
  return refuse(shortened(*json_), allowed);
}

bool Field::has(std::string_view key) const {
  return json_->is_object() && json_->find(key) != json_->end();
}

Result<std::optional<Field>> Field::find(std::string_view key) const {
  if (!json_->is_object()) {
    return refuse_value("an object");
  }
  const auto it = json_->find(key);
  if (it == json_->end() || it->is_null()) {
    return std::optional<Field>();
  }
  return std::optional<Field>(Field(file_, *from_, *it));
}

Result<Field> Field::at(std::string_view key) const {
  SPYRE_ASSIGN_OR_RETURN(std::optional<Field> field, find(key));
  if (!field) {
    return refuse(fmt::format("no '{}'", key), fmt::format("an object with '{}'", key), ErrorKind::kNotFound);
  }
  return std::move(*field);
}

Result<std::vector<std::pair<const std::string&, Field>>> Field::members(size_t limit) const {
  if (!json_->is_object()) {
    return refuse_value("an object");
  }
  if (json_->size() > limit) {
    return refuse(fmt::format("{} members", json_->size()), fmt::format("at most {}", limit));
  }
  std::vector<std::pair<const std::string&, Field>> out;
  out.reserve(json_->size());
  for (auto it = json_->begin(); it != json_->end(); ++it) {
    out.emplace_back(it.key(), Field(file_, *from_, it.value()));
  }
  return out;
}

Result<std::vector<Field>> Field::elements(size_t limit) const {
  if (!json_->is_array()) {
    return refuse_value("a list");
  }
  if (json_->size() > limit) {
    return refuse(fmt::format("{} elements", json_->size()), fmt::format("at most {}", limit));
  }
  std::vector<Field> out;
  out.reserve(json_->size());
  for (const Json& element : *json_) {
    out.push_back(Field(file_, *from_, element));
  }
  return out;
}

Result<int64_t> Field::integer(int64_t low, int64_t high) const {
  std::optional<int64_t> value;
  if (json_->is_number_unsigned()) {
    const auto number = json_->get<uint64_t>();
    if (number <= static_cast<uint64_t>(INT64_MAX)) {
      value = static_cast<int64_t>(number);
    }
  } else if (json_->is_number_integer()) {
    value = json_->get<int64_t>();
  } else if (json_->is_string()) {
    value = parse_decimal(json_->get_ref<const std::string&>());
  }
  if (!value || *value < low || *value > high) {
    return refuse_value(low == high ? fmt::format("{}", low)
                                    : fmt::format("an integer from {} to {}", low, high));
  }
  return *value;
}

Result<double> Field::number() const {
  static const std::map<std::string, double> kWords = {{"inf", std::numeric_limits<double>::infinity()},
                                                       {"-inf", -std::numeric_limits<double>::infinity()},
                                                       {"nan", std::numeric_limits<double>::quiet_NaN()}};
  if (json_->is_number()) {
    return json_->get<double>();
  }
  if (json_->is_string()) {
    if (const auto word = kWords.find(json_->get_ref<const std::string&>()); word != kWords.end()) {
      return word->second;
    }
  }
  return refuse_value("a number, \"inf\", \"-inf\" or \"nan\"");
}

Result<std::string> Field::text() const {
  if (!json_->is_string()) {
    return refuse_value("a string");
  }
  return json_->get<std::string>();
}

Result<std::vector<std::string>> Field::texts(size_t limit) const {
  SPYRE_ASSIGN_OR_RETURN(const std::vector<Field> fields, elements(limit));
  std::vector<std::string> out;
  for (const Field& field : fields) {
    SPYRE_ASSIGN_OR_RETURN(std::string text, field.text());
    out.push_back(std::move(text));
  }
  return out;
}

Result<int64_t> optional_integer(const Field& owner, std::string_view key, int64_t low, int64_t high,
                                 int64_t fallback) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> field, owner.find(key));
  return field ? field->integer(low, high) : Result<int64_t>(fallback);
}

Result<std::string> optional_text(const Field& owner, std::string_view key, std::string fallback) {
  SPYRE_ASSIGN_OR_RETURN(const std::optional<Field> field, owner.find(key));
  return field ? field->text() : Result<std::string>(std::move(fallback));
}

}  // namespace spyre::program
