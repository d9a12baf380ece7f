#include "spyre/report/plan_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "spyre/base/json.h"
#include "spyre/report/plan_facts.h"

namespace spyre::report {
namespace {

int64_t saved_by(const Json* row) {
  return row == nullptr || (*row)["address"].is_null() ? 0 : (*row)["saves"].get<int64_t>();
}
int64_t moved_by(const Json* row) {
  return row == nullptr ? 0 : (*row)["moves"].get<int64_t>();
}
Json place_of(const Json* row) {
  return row == nullptr ? Json() : Json(place_text(*row));
}
bool in_lx(const Json* row) {
  return row != nullptr && !(*row)["address"].is_null();
}

// Every buffer of either plan, the first plan's first.
struct Pair {
  std::string name;
  const Json* from = nullptr;
  const Json* to = nullptr;
};

std::vector<Pair> pairs_of(const Json& from, const Json& to) {
  std::vector<Pair> pairs;
  std::map<std::string, size_t> position;
  for (const Json& row : from["buffers"]) {
    position[row["buffer"]] = pairs.size();
    pairs.push_back({.name = row["buffer"], .from = &row});
  }
  for (const Json& row : to["buffers"]) {
    if (const auto found = position.find(row["buffer"]); found != position.end()) {
      pairs[found->second].to = &row;
    } else {
      pairs.push_back({.name = row["buffer"], .to = &row});
    }
  }
  return pairs;
}

std::string or_dash(const Json& place) {
  return place.is_null() ? "-" : place.get<std::string>();
}

}  // namespace

Json compare_plans(const Json& from, const Json& to) {
  Json changes = Json::array();
  int64_t other_address = 0;
  for (const Pair& pair : pairs_of(from, to)) {
    const bool both = pair.from != nullptr && pair.to != nullptr;
    const bool same_place = both && in_lx(pair.from) == in_lx(pair.to);
    const int64_t saved = saved_by(pair.to) - saved_by(pair.from);
    const int64_t moved = moved_by(pair.to) - moved_by(pair.from);
    if (same_place && saved == 0 && moved == 0) {
      other_address += (*pair.from)["address"] != (*pair.to)["address"];
      continue;
    }
    changes.push_back({{"buffer", pair.name},
                       {"from", place_of(pair.from)},
                       {"to", place_of(pair.to)},
                       {"saved", saved},
                       {"moved", moved}});
  }
  const auto both = [&](const Json& a, const Json& b) { return Json{{"from", a}, {"to", b}}; };
  return {{"graphs", both(from["graph"], to["graph"])},
          {"changes", changes},
          {"moved_address", other_address},
          {"saved", both(from["saved"], to["saved"])},
          {"moved", both(from["moved"], to["moved"])},
          {"us", both(from["cost"]["us"], to["cost"]["us"])},
          {"peak", both(from["peak"], to["peak"])}};
}

std::string comparison_text(const Json& comparison) {
  const Json& changes = comparison["changes"];
  std::string text;
  if (!changes.empty()) {
    size_t width = 6;
    for (const Json& row : changes) width = std::max(width, row["buffer"].get<std::string>().size());
    text = fmt::format("{:<{}}  {:<13}  {:<13} {:>13} {:>13}\n", "buffer", width, "from", "to", "B saved",
                       "B moved");
    for (const Json& row : changes) {
      text += fmt::format("{:<{}}  {:<13}  {:<13} {:>+13} {:>+13}\n", row["buffer"].get<std::string>(), width,
                          or_dash(row["from"]), or_dash(row["to"]), row["saved"].get<int64_t>(),
                          row["moved"].get<int64_t>());
    }
  }
  text += fmt::format("buffers that differ in place or traffic: {}; in address only: {}\n", changes.size(),
                      comparison["moved_address"].get<int64_t>());
  for (const char* field : {"saved", "moved", "peak"}) {
    const int64_t from = comparison[field]["from"].get<int64_t>(),
                  to = comparison[field]["to"].get<int64_t>();
    text += fmt::format("{:<7} {} -> {} B ({:+})\n", field, from, to, to - from);
  }
  const double from = comparison["us"]["from"].get<double>(), to = comparison["us"]["to"].get<double>();
  return text + fmt::format("model   {:.2f} -> {:.2f} us ({:+.2f})\n", from, to, to - from);
}

}  // namespace spyre::report
