#include <fmt/format.h>

#include <algorithm>

#include "spyre/base/text.h"
#include "spyre/passes/plan_scratchpad.h"

namespace spyre {

Bytes ScratchpadPlan::saved() const {
  Bytes sum;
  for (const Entry& entry : entries) sum += entry.address ? entry.saves : Bytes(0);
  return sum;
}

Bytes ScratchpadPlan::at_stake() const {
  Bytes sum;
  for (const Entry& entry : entries) sum += entry.saves;
  return sum;
}

Bytes ScratchpadPlan::peak() const {
  Bytes end;
  for (const Entry& entry : entries)
    end = std::max(end, entry.address ? *entry.address + entry.per_core : end);
  return end;
}

std::string ScratchpadPlan::to_text() const {
  size_t width = 6;
  for (const Entry& entry : entries) width = std::max(width, entry.buffer.size());
  std::string text = fmt::format("{:<{}} {:>9} {:>12} {:>12} {:>14}  {}\n", "buffer", width, "nodes",
                                 "B per core", "LX address", "B saved", "remark");
  for (const Entry& entry : entries) {
    std::string remark = entry.reason;
    if (entry.clone) remark = "clone of the input";
    if (!entry.copy_of.empty() && entry.address) remark = "shuffled from " + entry.copy_of;
    if (entry.copied_out && entry.address) remark = "copied out once";
    if (!entry.in_place_of.empty()) remark = "in place of " + entry.in_place_of;
    text += fmt::format("{:<{}} {:>9} {:>12} {:>12} {:>14}  {}\n", entry.buffer, width,
                        fmt::format("{}..{}", entry.first, entry.last), entry.per_core.count(),
                        entry.address ? std::to_string(entry.address->count()) : "-",
                        entry.address ? entry.saves.count() : 0, remark);
  }
  return text + fmt::format("{} of {} B of device memory traffic avoided; {} of {} B of LX; {}, {}\n",
                            saved().count(), at_stake().count(), peak().count(), capacity.count(), solver,
                            optimal ? "proven best" : "not proven best");
}

Json ScratchpadPlan::to_json() const {
  Json rows = Json::array();
  for (const Entry& entry : entries) {
    rows.push_back({{"buffer", entry.buffer},
                    {"first", entry.first},
                    {"last", entry.last},
                    {"bytes_per_core", entry.per_core.count()},
                    {"address", entry.address ? Json(entry.address->count()) : Json()},
                    {"reason", entry.reason},
                    {"in_place_of", entry.in_place_of},
                    {"clone", entry.clone},
                    {"copied_out", entry.copied_out},
                    {"copy_of", entry.copy_of},
                    {"saves", entry.saves.count()}});
  }
  return {{"capacity", capacity.count()},
          {"solver", solver},
          {"optimal", optimal},
          {"peak", peak().count()},
          {"saved", saved().count()},
          {"at_stake", at_stake().count()},
          {"buffers", rows}};
}

}  // namespace spyre
