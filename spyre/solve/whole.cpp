#include "spyre/solve/whole.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace spyre::solve {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min() / 2;

}  // namespace

bool WholeRelaxation::lay_out(const std::vector<Fate>& fate, int64_t most_states) {
  sections_.assign(island_.sections, {});
  std::vector<std::vector<int>> begins(island_.sections);
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    if (fate[i] == Fate::kOpen) begins[island_.items[i].begin].push_back(i);
  }
  work_ = 0;
  for (int t = 0; t < island_.sections; ++t) {
    Section& here = sections_[t];
    if (t > 0) {
      for (const int i : sections_[t - 1].live) {
        const bool stays = island_.items[i].end > t;
        here.stays.push_back(stays ? int(here.live.size()) : -1);
        if (stays) here.live.push_back(i);
      }
    }
    here.live.insert(here.live.end(), begins[t].begin(), begins[t].end());
    if (here.live.size() > 24) return false;
    work_ += int64_t{4} << here.live.size();
    if (work_ > most_states) return false;
  }
  return true;
}

/// The best value of every set of live items, before asking whether it fits.
std::vector<int64_t> WholeRelaxation::advance(Section& section, const std::vector<int64_t>& before) const {
  const size_t staying =
      std::count_if(section.stays.begin(), section.stays.end(), [](int place) { return place >= 0; });
  std::vector<int64_t> value(size_t{1} << section.live.size(), kNever);
  section.origin.assign(size_t{1} << staying, 0);
  std::vector<uint32_t> here(before.size(), 0);  // a set before, as far as it stays
  for (uint32_t set = 0; set < before.size(); ++set) {
    if (set != 0) {
      const int lowest = std::countr_zero(set);
      const int place = section.stays[lowest];
      here[set] = here[set & (set - 1)] | (place >= 0 ? uint32_t{1} << place : 0);
    }
    if (before[set] > value[here[set]]) {
      value[here[set]] = before[set];
      section.origin[here[set]] = set;
    }
  }
  for (size_t next = staying; next < section.live.size(); ++next) {
    const size_t bit = size_t{1} << next;
    const int64_t gain = island_.items[section.live[next]].value;
    for (size_t set = 0; set < bit; ++set) {
      if (value[set] > kNever) value[set | bit] = value[set] + gain;
    }
  }
  return value;
}

/// Marks the sets that the section has no room for. A child needs none in its first section while a parent is
/// kept.
void WholeRelaxation::drop_overfull(int t, const std::vector<Fate>& fate, std::vector<int64_t>& value) const {
  const Section& section = sections_[t];
  int64_t always = 0;
  std::vector<std::pair<uint32_t, int64_t>> relief;  // if one of these parents is kept: so much less
  std::vector<int64_t> room;
  const auto parents_kept = [&](const Item& item, uint32_t& open) {
    bool surely = false;
    for (const int parent : item.parents) {
      surely = surely || fate[parent] == Fate::kIn;
      const auto found = std::find(section.live.begin(), section.live.end(), parent);
      if (found != section.live.end()) open |= uint32_t{1} << (found - section.live.begin());
    }
    return surely;
  };
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    const Item& item = island_.items[i];
    if (fate[i] != Fate::kIn || t < item.begin || t >= item.end) continue;
    uint32_t open = 0;
    if (t == item.begin && parents_kept(item, open)) continue;
    always += item.room;
    if (t == item.begin && open != 0) relief.push_back({open, item.room});
  }
  std::vector<std::pair<uint32_t, std::pair<uint32_t, int64_t>>> child_relief;
  for (size_t place = 0; place < section.live.size(); ++place) {
    const Item& item = island_.items[section.live[place]];
    uint32_t open = 0;
    const bool surely = t == item.begin && parents_kept(item, open);
    room.push_back(surely ? 0 : item.room);
    if (!surely && t == item.begin && open != 0)
      child_relief.push_back({uint32_t{1} << place, {open, item.room}});
  }
  std::vector<int64_t> load(value.size(), always);
  for (uint32_t set = 0; set < value.size(); ++set) {
    if (set != 0) load[set] = load[set & (set - 1)] + room[std::countr_zero(set)];
    if (value[set] == kNever) continue;
    int64_t less = 0;
    for (const auto& [parents, bytes] : relief) less += (set & parents) != 0 ? bytes : 0;
    for (const auto& [child, rest] : child_relief) {
      less += (set & child) != 0 && (set & rest.first) != 0 ? rest.second : 0;
    }
    if (load[set] - less > island_.height) value[set] = kNever;
  }
}

void WholeRelaxation::trace_back(uint32_t best) {
  for (int t = island_.sections - 1; t >= 0; --t) {
    const Section& section = sections_[t];
    for (size_t place = 0; place < section.live.size(); ++place) {
      if (best >> place & 1) kept_[section.live[place]] = true;
    }
    const uint32_t staying = best & uint32_t(section.origin.size() - 1);
    best = section.origin[staying];
  }
}

bool WholeRelaxation::solve(const std::vector<Fate>& fate, int64_t most_states) {
  if (!lay_out(fate, most_states)) return false;
  kept_.assign(island_.items.size(), false);
  bound_ = 0;
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    kept_[i] = fate[i] == Fate::kIn;
    if (kept_[i]) bound_ += island_.items[i].value;
  }
  std::vector<int64_t> value = {0};
  for (int t = 0; t < island_.sections; ++t) {
    value = advance(sections_[t], value);
    drop_overfull(t, fate, value);
  }
  const auto best = std::max_element(value.begin(), value.end());
  if (*best <= kNever) return false;
  bound_ += *best;
  trace_back(uint32_t(best - value.begin()));
  return true;
}

}  // namespace spyre::solve
