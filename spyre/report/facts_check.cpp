#include "spyre/report/facts_check.h"

#include <fmt/format.h>

#include "spyre/base/json.h"

namespace spyre::report {
namespace {

bool fits(const Json& value, Kind kind) {
  switch (kind) {
    case Kind::kNumber:
      return value.is_number();
    case Kind::kText:
      return value.is_string();
    case Kind::kFlag:
      return value.is_boolean();
    case Kind::kList:
      return value.is_array();
    case Kind::kObject:
      return value.is_object();
    case Kind::kNumberOrNull:
      return value.is_number() || value.is_null();
  }
  return false;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kNumber:
      return "a number";
    case Kind::kText:
      return "text";
    case Kind::kFlag:
      return "true or false";
    case Kind::kList:
      return "a list";
    case Kind::kObject:
      return "an object";
    case Kind::kNumberOrNull:
      return "a number or null";
  }
  return "";
}

}  // namespace

Error FactsCheck::refuse(const std::string& what) const {
  return Error(ErrorKind::kParse, fmt::format("{}: {}", origin_, what)).note(std::string(written_by_));
}

Status FactsCheck::fields(const Json& object, std::span<const Field> fields, const std::string& path) const {
  if (!object.is_object()) {
    return refuse(
        fmt::format("{} is {}: expected an object", path.empty() ? "the whole" : path, object.type_name()));
  }
  for (const Field& field : fields) {
    const auto found = object.find(field.name);
    const std::string where = path.empty() ? field.name : path + "." + field.name;
    if (found == object.end()) {
      return refuse(fmt::format("{} is missing: expected {}", where, name_of(field.kind)));
    }
    if (!fits(*found, field.kind)) {
      return refuse(
          fmt::format("{} is of type {}: expected {}", where, found->type_name(), name_of(field.kind)));
    }
  }
  return Status();
}

Status FactsCheck::rows(const Json& rows, std::span<const Field> fields, const std::string& path) const {
  for (size_t i = 0; i < rows.size(); ++i)
    SPYRE_TRY(this->fields(rows[i], fields, fmt::format("{}[{}]", path, i)));
  return Status();
}

}  // namespace spyre::report
