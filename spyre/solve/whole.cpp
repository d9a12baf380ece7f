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

/// Marks the sets that hold alternatives, or that the section has no room for. Children that begin here need
/// none where a kept parent hands its slot over.
void WholeRelaxation::drop_overfull(int t, const std::vector<Fate>& fate, std::vector<int64_t>& value) const {
  const Section& section = sections_[t];
  int64_t always = 0;
  std::vector<int64_t> room;  // by place
  std::vector<Guest> guests;  // children that may take over
  std::vector<Host> hosts;    // their parents
  const auto place_of = [&](int i) -> int {
    const auto found = std::find(section.live.begin(), section.live.end(), i);
    return found == section.live.end() ? -1 : int(found - section.live.begin());
  };
  const auto add_guest = [&](int i) {
    Guest guest{place_of(i), {island_.items[i].room, 0}};
    for (const int parent : island_.items[i].parents) {
      if (fate[parent] == Fate::kOut) continue;
      const auto host =
          std::find_if(hosts.begin(), hosts.end(), [&](const Host& h) { return h.item == parent; });
      guest.hand_over.parents |= uint64_t{1} << ((host - hosts.begin()) % 64);
      if (host == hosts.end()) hosts.push_back({parent, place_of(parent)});
    }
    if (guest.hand_over.parents != 0) guests.push_back(guest);
  };
  for (int i = 0; i < std::ssize(island_.items); ++i) {
    const Item& item = island_.items[i];
    if (fate[i] != Fate::kIn || t < item.begin || t >= item.end) continue;
    always += item.room;
    if (t == item.begin) add_guest(i);
  }
  for (const int i : section.live) {
    room.push_back(island_.items[i].room);
    if (t == island_.items[i].begin) add_guest(i);
  }
  std::vector<uint32_t> rivals(section.live.size(), 0);  // by place: alternatives among the live
  for (size_t a = 0; a < section.live.size(); ++a) {
    for (size_t b = 0; b < section.live.size(); ++b) {
      const bool alternatives =
          are_alternatives(island_.items[section.live[a]], island_.items[section.live[b]]);
      if (a != b && alternatives) rivals[a] |= uint32_t{1} << b;
    }
  }
  std::vector<bool> rivalry(value.size(), false);
  std::vector<int64_t> load(value.size(), always);
  for (uint32_t set = 0; set < value.size(); ++set) {
    if (set != 0) {
      const int lowest = std::countr_zero(set);
      load[set] = load[set & (set - 1)] + room[lowest];
      rivalry[set] = rivalry[set & (set - 1)] || (rivals[lowest] & set) != 0;
      if (rivalry[set]) value[set] = kNever;
    }
    if (value[set] == kNever || load[set] <= island_.height) continue;
    if (load[set] - most_handed_over(set, guests, hosts) > island_.height) value[set] = kNever;
  }
}

/// The most room that hand-overs among the kept items save.
int64_t WholeRelaxation::most_handed_over(uint32_t set, const std::vector<Guest>& guests,
                                          const std::vector<Host>& hosts) const {
  const auto kept = [&](int place) { return place < 0 || (set >> place & 1) != 0; };
  uint64_t kept_hosts = 0;
  for (size_t h = 0; h < hosts.size(); ++h) kept_hosts |= uint64_t{kept(hosts[h].place)} << (h % 64);
  std::vector<HandOver> children;
  int64_t all = 0;
  for (const Guest& guest : guests) {
    const uint64_t parents = guest.hand_over.parents & kept_hosts;
    if (!kept(guest.place) || parents == 0) continue;
    children.push_back({guest.hand_over.room, parents});
    all += guest.hand_over.room;
  }
  return children.size() < 2 || hosts.size() > 64 ? all : most_room_handed_over(std::move(children));
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
