#include "spyre/report/time_facts.h"

#include <fmt/format.h>

#include <array>

#include "spyre/base/json.h"
#include "spyre/report/facts_check.h"

namespace spyre::report {
namespace {

constexpr std::array kTime = {
    Field{"facts", Kind::kText},   Field{"version", Kind::kNumber}, Field{"kind", Kind::kText},
    Field{"name", Kind::kText},    Field{"machine", Kind::kObject}, Field{"totals", Kind::kObject},
    Field{"bound", Kind::kObject}, Field{"waterfall", Kind::kList}, Field{"items", Kind::kList},
    Field{"states", Kind::kList},  Field{"rows", Kind::kList},      Field{"counters", Kind::kList},
    Field{"lx", Kind::kList},
};
constexpr std::array kMachine = {
    Field{"name", Kind::kText},
    Field{"cores", Kind::kNumber},
    Field{"lx_bytes_per_core", Kind::kNumber},
    Field{"memory_gb_per_s", Kind::kNumber},
    Field{"macs_per_ns", Kind::kNumber},
    Field{"elements_per_ns", Kind::kNumber},
};
constexpr std::array kTotals = {
    Field{"total_us", Kind::kNumber},         Field{"kernel_us", Kind::kNumber},
    Field{"launch_us", Kind::kNumber},        Field{"memory_busy_us", Kind::kNumber},
    Field{"read_bytes", Kind::kNumber},       Field{"written_bytes", Kind::kNumber},
    Field{"compulsory_bytes", Kind::kNumber}, Field{"ring_bytes", Kind::kNumber},
};
constexpr std::array kBound = {Field{"by", Kind::kText}, Field{"us", Kind::kObject}};
constexpr std::array kStep = {Field{"step", Kind::kText}, Field{"why", Kind::kText},
                              Field{"us", Kind::kNumber}};
constexpr std::array kItem = {
    Field{"name", Kind::kText},
    Field{"kind", Kind::kText},
    Field{"count", Kind::kNumber},
    Field{"us", Kind::kNumber},
    Field{"bound_by", Kind::kText},
    Field{"read_bytes", Kind::kNumber},
    Field{"written_bytes", Kind::kNumber},
    Field{"macs", Kind::kNumber},
    Field{"elements", Kind::kNumber},
    Field{"aten", Kind::kText},
    Field{"source", Kind::kText},
    Field{"help", Kind::kText},
    Field{"help_us", Kind::kNumber},
};
constexpr std::array kRow = {Field{"name", Kind::kText}, Field{"slices", Kind::kList}};
constexpr std::array kCounter = {Field{"name", Kind::kText}, Field{"unit", Kind::kText},
                                 Field{"points", Kind::kList}};
constexpr std::array kLife = {
    Field{"tensor", Kind::kText},  Field{"item", Kind::kNumber},     Field{"address", Kind::kNumber},
    Field{"bytes", Kind::kNumber}, Field{"begin_ns", Kind::kNumber}, Field{"end_ns", Kind::kNumber},
};

/// Slices are four whole numbers each: state, item or -1, begin and length in ns.
Status check_slices(const Json& facts, const FactsCheck& check) {
  const auto states = static_cast<int64_t>(facts["states"].size()),
             items = static_cast<int64_t>(facts["items"].size());
  for (size_t r = 0; r < facts["rows"].size(); ++r) {
    const Json& slices = facts["rows"][r]["slices"];
    const auto wrong = [&](size_t i) {
      return check.refuse(
          fmt::format("rows[{}].slices[{}] is no slice: expected state, item, begin and length", r, i));
    };
    if (slices.size() % 4 != 0) return wrong(slices.size() / 4);
    for (size_t i = 0; i < slices.size(); i += 4) {
      for (size_t k = 0; k < 4; ++k) {
        if (!slices[i + k].is_number_integer()) return wrong(i / 4);
      }
      const int64_t state = slices[i], item = slices[i + 1], begin = slices[i + 2], length = slices[i + 3];
      if (state < 0 || state >= states || item < -1 || item >= items || begin < 0 || length < 0)
        return wrong(i / 4);
    }
  }
  return Status();
}

}  // namespace

Status check_time(const Json& facts, std::string_view origin) {
  const FactsCheck check(
      origin,
      "such facts are what `spyre-run BUNDLE --facts FILE` and `python -m torch_spyre.profile` write");
  SPYRE_TRY(check.fields(facts, kTime, ""));
  if (facts["facts"] != "spyre-time" || facts["version"] != 1) {
    return check.refuse(fmt::format("found facts '{}' of version {}: expected 'spyre-time' of version 1",
                                    facts["facts"].get<std::string>(), facts["version"].dump()));
  }
  SPYRE_TRY(check.fields(facts["machine"], kMachine, "machine"));
  SPYRE_TRY(check.fields(facts["totals"], kTotals, "totals"));
  SPYRE_TRY(check.fields(facts["bound"], kBound, "bound"));
  SPYRE_TRY(check.rows(facts["waterfall"], kStep, "waterfall"));
  SPYRE_TRY(check.rows(facts["items"], kItem, "items"));
  SPYRE_TRY(check.rows(facts["rows"], kRow, "rows"));
  SPYRE_TRY(check.rows(facts["counters"], kCounter, "counters"));
  SPYRE_TRY(check.rows(facts["lx"], kLife, "lx"));
  SPYRE_TRY(check_slices(facts, check));
  if (!facts.contains("programs")) return Status();
  for (const Json& program : facts["programs"]) SPYRE_TRY(check_time(program, origin));
  return Status();
}

}  // namespace spyre::report
