#include "spyre/lx/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/base/json.h"
#include "spyre/solve/bounds.h"

namespace spyre::lx {

Bytes Plan::saved() const {
  Bytes sum;
  for (const Entry& entry : entries) sum += entry.address ? entry.saves : Bytes(0);
  return sum;
}

Bytes Plan::at_stake() const {
  return solve::bytes_at_stake(asked);
}

Bytes Plan::peak() const {
  Bytes end;
  for (const Entry& entry : entries)
    end = std::max(end, entry.address ? *entry.address + entry.per_core : end);
  return end;
}

Bytes Plan::most_saved() const {
  return optimal ? saved() : at_stake() - solve::unavoidable_off_chip(asked);
}

namespace {

// What a person should know about one buffer, in a few words.
std::string remark_on(const Plan::Entry& entry, const std::vector<std::string>& nodes) {
  const auto name = [&](int64_t node) { return nodes[static_cast<size_t>(node)]; };
  if (!entry.address) return entry.reason;
  if (entry.reloaded_before || entry.evicted_after) {
    std::string text = !entry.in_place_of.empty() ? "in place of " + entry.in_place_of + ", "
                       : entry.copied_out         ? "copied out, "
                                                  : "";
    if (entry.reloaded_before) text += fmt::format("reloaded before {}, ", name(*entry.reloaded_before));
    if (entry.evicted_after) text += fmt::format("evicted after {}, ", name(*entry.evicted_after));
    return text + fmt::format("costs {} B, saves {} B", entry.pays.count(), entry.saves.count());
  }
  if (!entry.in_place_of.empty()) return "in place of " + entry.in_place_of;
  if (entry.copied_out) return "copied out once" + (entry.reason.empty() ? "" : ": " + entry.reason);
  if (!entry.copy_of.empty()) return "shuffled from " + entry.copy_of;
  return entry.clone ? "clone of the input" : "";
}

Json names_of(const std::vector<int64_t>& nodes, const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const int64_t node : nodes) list.push_back(names[static_cast<size_t>(node)]);
  return list;
}

}  // namespace

Json Plan::to_json() const {
  Json rows = Json::array();
  for (const Entry& entry : entries) {
    rows.push_back(
        {{"buffer", entry.buffer},
         {"place", entry.address ? "lx" : "hbm"},
         {"first", entry.first},
         {"last", entry.last},
         {"bytes_per_core", entry.per_core.count()},
         {"address", entry.address ? Json(entry.address->count()) : Json()},
         {"reason", entry.reason},
         {"in_place_of", entry.in_place_of},
         {"clone", entry.clone},
         {"copied_out", entry.copied_out},
         {"copy_of", entry.copy_of},
         {"part_of", entry.part_of},
         {"evicted_after",
          entry.evicted_after ? Json(nodes[static_cast<size_t>(*entry.evicted_after)]) : Json()},
         {"reloaded_before",
          entry.reloaded_before ? Json(nodes[static_cast<size_t>(*entry.reloaded_before)]) : Json()},
         {"pays", entry.pays.count()},
         {"saves", entry.saves.count()},
         {"live", {entry.live.begin.count(), entry.live.end.count()}},
         {"made_by", names_of(entry.made_by, nodes)},
         {"read_by", names_of(entry.read_by, nodes)},
         {"remark", remark_on(entry, nodes)}});
  }
  return {{"capacity", capacity.count()},
          {"solver", solver},
          {"optimal", optimal},
          {"work", work},
          {"peak", peak().count()},
          {"saved", saved().count()},
          {"at_stake", at_stake().count()},
          {"bound", most_saved().count()},
          {"buffers", rows}};
}

}  // namespace spyre::lx
