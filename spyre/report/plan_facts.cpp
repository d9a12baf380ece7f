#include "spyre/report/plan_facts.h"

#include <fmt/format.h>

#include <array>

#include "spyre/base/json.h"

namespace spyre::report {
namespace {

enum class Kind { kNumber, kText, kFlag, kList, kObject, kNumberOrNull };

struct Field {
  const char* name;
  Kind kind;
};

constexpr std::array kPlan = {
    Field{"graph", Kind::kText},   Field{"cores", Kind::kNumber}, Field{"capacity", Kind::kNumber},
    Field{"peak", Kind::kNumber},  Field{"saved", Kind::kNumber}, Field{"at_stake", Kind::kNumber},
    Field{"bound", Kind::kNumber}, Field{"moved", Kind::kNumber}, Field{"compulsory", Kind::kNumber},
    Field{"solver", Kind::kText},  Field{"optimal", Kind::kFlag}, Field{"work", Kind::kNumber},
    Field{"cost", Kind::kObject},  Field{"nodes", Kind::kList},   Field{"buffers", Kind::kList},
};
constexpr std::array kCost = {
    Field{"us", Kind::kNumber},        Field{"memory_us", Kind::kNumber}, Field{"compute_us", Kind::kNumber},
    Field{"vector_us", Kind::kNumber}, Field{"ring_us", Kind::kNumber},
};
constexpr std::array kNode = {Field{"name", Kind::kText}, Field{"op", Kind::kText}};
constexpr std::array kBuffer = {
    Field{"buffer", Kind::kText},
    Field{"place", Kind::kText},
    Field{"first", Kind::kNumber},
    Field{"last", Kind::kNumber},
    Field{"bytes_per_core", Kind::kNumber},
    Field{"address", Kind::kNumberOrNull},
    Field{"in_place_of", Kind::kText},
    Field{"copy_of", Kind::kText},
    Field{"clone", Kind::kFlag},
    Field{"copied_out", Kind::kFlag},
    Field{"saves", Kind::kNumber},
    Field{"moves", Kind::kNumber},
    Field{"live", Kind::kList},
    Field{"made_by", Kind::kList},
    Field{"read_by", Kind::kList},
    Field{"remark", Kind::kText},
};
constexpr std::array kAlternative = {
    Field{"solver", Kind::kText}, Field{"saved", Kind::kNumber}, Field{"moved", Kind::kNumber},
    Field{"us", Kind::kNumber},   Field{"optimal", Kind::kFlag}, Field{"work", Kind::kNumber},
};

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

Error no_plan(std::string_view origin, const std::string& what) {
  return Error(ErrorKind::kParse, fmt::format("{}: {}", origin, what))
      .note("a plan is what `spyre-plan GRAPH --json` prints");
}

template <size_t n>
Status check_fields(const Json& object, const std::array<Field, n>& fields, std::string_view origin,
                    const std::string& path) {
  if (!object.is_object())
    return no_plan(origin, fmt::format("{} is {}: expected an object", path.empty() ? "the whole" : path,
                                       object.type_name()));
  for (const Field& field : fields) {
    const auto found = object.find(field.name);
    const std::string where = path.empty() ? field.name : path + "." + field.name;
    if (found == object.end())
      return no_plan(origin, fmt::format("{} is missing: expected {}", where, name_of(field.kind)));
    if (!fits(*found, field.kind)) {
      return no_plan(origin, fmt::format("{} is of type {}: expected {}", where, found->type_name(),
                                         name_of(field.kind)));
    }
  }
  return Status();
}

template <size_t n>
Status check_rows(const Json& rows, const std::array<Field, n>& fields, std::string_view origin,
                  const char* name) {
  for (size_t i = 0; i < rows.size(); ++i)
    SPYRE_TRY(check_fields(rows[i], fields, origin, fmt::format("{}[{}]", name, i)));
  return Status();
}

}  // namespace

Status check_plan(const Json& plan, std::string_view origin) {
  SPYRE_TRY(check_fields(plan, kPlan, origin, ""));
  SPYRE_TRY(check_fields(plan["cost"], kCost, origin, "cost"));
  SPYRE_TRY(check_rows(plan["nodes"], kNode, origin, "nodes"));
  SPYRE_TRY(check_rows(plan["buffers"], kBuffer, origin, "buffers"));
  if (!plan.contains("alternatives")) return Status();
  return check_rows(plan["alternatives"], kAlternative, origin, "alternatives");
}

std::string place_text(const Json& buffer) {
  return buffer["address"].is_null() ? "device memory"
                                     : fmt::format("LX {}", buffer["address"].get<int64_t>());
}

}  // namespace spyre::report
