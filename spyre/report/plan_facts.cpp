#include "spyre/report/plan_facts.h"

#include <fmt/format.h>

#include <array>

#include "spyre/base/json.h"
#include "spyre/report/facts_check.h"

namespace spyre::report {
namespace {

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

}  // namespace

Status check_plan(const Json& plan, std::string_view origin) {
  const FactsCheck check(origin, "a plan is what `spyre-plan GRAPH --json` prints");
  SPYRE_TRY(check.fields(plan, kPlan, ""));
  SPYRE_TRY(check.fields(plan["cost"], kCost, "cost"));
  SPYRE_TRY(check.rows(plan["nodes"], kNode, "nodes"));
  SPYRE_TRY(check.rows(plan["buffers"], kBuffer, "buffers"));
  if (!plan.contains("alternatives")) return Status();
  return check.rows(plan["alternatives"], kAlternative, "alternatives");
}

std::string place_text(const Json& buffer) {
  return buffer["address"].is_null() ? "device memory"
                                     : fmt::format("LX {}", buffer["address"].get<int64_t>());
}

}  // namespace spyre::report
