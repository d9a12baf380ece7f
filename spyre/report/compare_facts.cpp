#include "spyre/report/compare_facts.h"

#include <array>

#include "spyre/base/json.h"
#include "spyre/report/facts_check.h"

namespace spyre::report {
namespace {

constexpr std::array kComparison = {
    Field{"facts", Kind::kText},     Field{"version", Kind::kNumber},    Field{"model", Kind::kText},
    Field{"reference", Kind::kText}, Field{"mode", Kind::kText},         Field{"ok", Kind::kFlag},
    Field{"answer", Kind::kText},    Field{"held_bytes", Kind::kNumber}, Field{"weights", Kind::kList},
    Field{"modules", Kind::kList},   Field{"operators", Kind::kList},    Field{"notes", Kind::kList},
};
constexpr std::array kWeight = {
    Field{"name", Kind::kText},          Field{"elements", Kind::kNumber},
    Field{"differ", Kind::kNumber},      Field{"error", Kind::kNumberOrNull},
    Field{"bound", Kind::kNumberOrNull}, Field{"index", Kind::kList},
    Field{"card", Kind::kNumberOrNull},  Field{"reference", Kind::kNumberOrNull},
};
constexpr std::array kModule = {
    Field{"path", Kind::kText},
    Field{"kind", Kind::kText},
    Field{"shape", Kind::kList},
    Field{"dtype", Kind::kText},
    Field{"accumulated", Kind::kNumberOrNull},
    Field{"rounding", Kind::kNumberOrNull},
    Field{"bound", Kind::kNumberOrNull},
    Field{"own", Kind::kNumberOrNull},
    Field{"own_bound", Kind::kNumberOrNull},
    Field{"out", Kind::kFlag},
    Field{"first", Kind::kNumber},
    Field{"last", Kind::kNumber},
};
constexpr std::array kOperator = {
    Field{"operator", Kind::kText},
    Field{"module", Kind::kText},
    Field{"kernel", Kind::kText},
    Field{"source", Kind::kText},
    Field{"shape", Kind::kList},
    Field{"dtype", Kind::kText},
    Field{"judged", Kind::kFlag},
    Field{"out", Kind::kFlag},
    Field{"error", Kind::kNumberOrNull},
    Field{"bound", Kind::kNumberOrNull},
    Field{"index", Kind::kList},
    Field{"card", Kind::kNumberOrNull},
    Field{"reference", Kind::kNumberOrNull},
    Field{"accumulated", Kind::kNumberOrNull},
    Field{"rounding", Kind::kNumberOrNull},
    Field{"note", Kind::kText},
};
constexpr std::array kNote = {Field{"text", Kind::kText}, Field{"times", Kind::kNumber}};

}  // namespace

Status check_comparison(const Json& facts, std::string_view origin) {
  const FactsCheck check(origin, "torch_spyre.compare writes such facts");
  SPYRE_TRY(check.fields(facts, kComparison, ""));
  if (facts["facts"] != "spyre-compare" || facts["version"] != 1) {
    return check.refuse("these are no facts of a comparison, of version 1");
  }
  SPYRE_TRY(check.rows(facts["weights"], kWeight, "weights"));
  SPYRE_TRY(check.rows(facts["modules"], kModule, "modules"));
  SPYRE_TRY(check.rows(facts["operators"], kOperator, "operators"));
  return check.rows(facts["notes"], kNote, "notes");
}

}  // namespace spyre::report
