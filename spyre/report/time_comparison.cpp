#include "spyre/report/time_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "spyre/base/json.h"

namespace spyre::report {
namespace {

/// Items of one name and origin in one report.
struct Sum {
  double us = 0, most = -1;
  int64_t bytes = 0;
  std::string bound;  // of the longest

  void add(const Json& item) {
    const double took = item["us"];
    us += took;
    bytes += item["read_bytes"].get<int64_t>() + item["written_bytes"].get<int64_t>();
    if (took <= most) return;
    most = took;
    bound = item["bound_by"];
  }
};

using Key = std::tuple<std::string, std::string, std::string>;  // name, ATen operator, source
struct Sides {
  std::optional<Sum> from, to;
};

Json side(const std::optional<Sum>& sum, auto Sum::*field) {
  return sum ? Json((*sum).*field) : Json();
}

Json from_to(const Json& from, const Json& to) {
  return {{"from", from}, {"to", to}};
}

/// What tells two reports apart that have one name: their machine, or their order.
Json names_of(const Json& from, const Json& to) {
  const std::string a = from["name"], b = to["name"];
  if (a != b) return from_to(a, b);
  const std::string on_a = from["machine"]["name"], on_b = to["machine"]["name"];
  return on_a != on_b ? from_to(a + " on " + on_a, b + " on " + on_b) : from_to(a + " before", b + " after");
}

}  // namespace

Json compare_times(const Json& from, const Json& to) {
  std::map<Key, Sides> items;
  const auto collect = [&](const Json& facts, std::optional<Sum> Sides::*which) {
    for (const Json& item : facts["items"]) {
      std::optional<Sum>& sum = items[{item["name"], item["aten"], item["source"]}].*which;
      if (!sum) sum.emplace();
      sum->add(item);
    }
  };
  collect(from, &Sides::from);
  collect(to, &Sides::to);
  std::vector<Json> changes;
  for (const auto& [key, sides] : items) {
    const double before = sides.from ? sides.from->us : 0, after = sides.to ? sides.to->us : 0;
    const int64_t moved_before = sides.from ? sides.from->bytes : 0,
                  moved_after = sides.to ? sides.to->bytes : 0;
    if (before == after && moved_before == moved_after) continue;
    changes.push_back({{"name", std::get<0>(key)},
                       {"aten", std::get<1>(key)},
                       {"source", std::get<2>(key)},
                       {"from_us", side(sides.from, &Sum::us)},
                       {"to_us", side(sides.to, &Sum::us)},
                       {"us", after - before},
                       {"from_bound", side(sides.from, &Sum::bound)},
                       {"to_bound", side(sides.to, &Sum::bound)},
                       {"from_bytes", moved_before},
                       {"to_bytes", moved_after}});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Json& a, const Json& b) {
    return std::abs(a["us"].get<double>()) > std::abs(b["us"].get<double>());
  });
  Json totals = Json::object();
  for (const auto& [name, value] : from["totals"].items()) {
    if (value.is_number() && to["totals"].contains(name)) totals[name] = from_to(value, to["totals"][name]);
  }
  return {{"facts", "spyre-time-comparison"},
          {"names", names_of(from, to)},
          {"bound", from_to(from["bound"]["by"], to["bound"]["by"])},
          {"totals", std::move(totals)},
          {"changes", std::move(changes)}};
}

std::string time_comparison_text(const Json& comparison) {
  const auto text = [](const Json& value) { return value.is_null() ? "-" : value.get<std::string>(); };
  const auto us = [](const Json& value) {
    return value.is_null() ? "-" : fmt::format("{:.2f}", value.get<double>());
  };
  std::string out =
      fmt::format("{} -> {}\n", text(comparison["names"]["from"]), text(comparison["names"]["to"]));
  for (const char* name : {"total_us", "kernel_us", "launch_us"}) {
    const Json& sides = comparison["totals"][name];
    const double from = sides["from"], to = sides["to"];
    out +=
        fmt::format("{:<10} {:>12.2f} -> {:>12.2f} us ({:+.2f})\n",
                    std::string_view(name).substr(0, std::string_view(name).size() - 3), from, to, to - from);
  }
  for (const char* name : {"read_bytes", "written_bytes", "ring_bytes"}) {
    const Json& sides = comparison["totals"][name];
    const int64_t from = sides["from"], to = sides["to"];
    out +=
        fmt::format("{:<10} {:>12} -> {:>12} B  ({:+})\n",
                    std::string_view(name).substr(0, std::string_view(name).size() - 6), from, to, to - from);
  }
  out += fmt::format("bound by   {} -> {}\n", text(comparison["bound"]["from"]),
                     text(comparison["bound"]["to"]));
  const Json& changes = comparison["changes"];
  if (changes.empty()) return out + "no operation takes another time\n";
  out += fmt::format("{:<22} {:>12} {:>12} {:>12}  {:<18} {}\n", "name", "from us", "to us", "us", "bound by",
                     "origin");
  for (size_t i = 0; i < std::min<size_t>(changes.size(), 40); ++i) {
    const Json& change = changes[i];
    const std::string origin = text(change["source"]).empty()
                                   ? text(change["aten"])
                                   : text(change["aten"]) + " at " + text(change["source"]);
    out += fmt::format("{:<22} {:>12} {:>12} {:>+12.2f}  {:<18} {}\n", text(change["name"]),
                       us(change["from_us"]), us(change["to_us"]), change["us"].get<double>(),
                       text(change["from_bound"]) + " -> " + text(change["to_bound"]), origin);
  }
  if (changes.size() > 40) out += fmt::format("... and {} more, with --json\n", changes.size() - 40);
  return out;
}

}  // namespace spyre::report
