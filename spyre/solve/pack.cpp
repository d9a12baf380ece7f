#include "spyre/solve/pack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "spyre/base/error.h"
#include "spyre/base/units.h"

namespace spyre::solve {
namespace {

constexpr int64_t kHigh = std::numeric_limits<int64_t>::max() / 4;
constexpr int kOrderings = 4;
constexpr int64_t kShortTry = 400;       // nodes
constexpr int64_t kNodeWork = 200;       // units, besides what depends on the items
constexpr size_t kMostStates = 1 << 20;  // remembered at a time

/// Luby's sequence 1 1 2 1 1 2 4 1 1 2 ...: restart lengths within a logarithm of the best for any problem.
int64_t luby(int64_t i) {
  const int64_t power = int64_t{1} << std::bit_width(uint64_t(i));
  return i == power - 1 ? power / 2 : luby(i - power / 2 + 1);
}

}  // namespace

Packer::Packer(const Island& island, PackTricks tricks) : island_(island), tricks_(tricks) {
  const int n = std::ssize(island.items);
  neighbours_.resize(n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const Item &a = island.items[i], &b = island.items[j];
      if (i != j && a.begin < b.end && b.begin < a.end) neighbours_[i].push_back(j);
    }
  }
  offset_.assign(n, -1);
  support_.assign(n, 0);
  taking_part_.assign(n, false);
  rank_.assign(n, 0);
  least_.assign(n, 0);
  open_load_.assign(island.sections, 0);
  blame_.assign(island.sections, 0);
  load_.assign(island.sections, 0);
  lowest_.assign(island.sections, 0);
  top1_.assign(island.sections, 0);
  top2_.assign(island.sections, 0);
  top1_of_.assign(island.sections, 0);
}

/// Ties in height are broken by rank. Good orders lay long and large items and those of crowded sections
/// first; which one is good differs, so the packer takes turns: a plain order, a mixture drawn at random, and
/// one that favours the sections in which earlier tries failed.
void Packer::rank_items(const std::vector<int>& chosen, int order) {
  std::vector<int64_t> crowd(island_.sections, 0);
  for (const int i : chosen) {
    for (int t = island_.items[i].begin; t < island_.items[i].end; ++t) crowd[t] += island_.items[i].room;
  }
  const auto most = [](const std::vector<int64_t>& of, const Item& item) {
    return double(*std::max_element(of.begin() + item.begin, of.begin() + item.end));
  };
  std::mt19937_64 random(order);
  const auto draw = [&] { return double(random() >> 11) * 0x1p-53; };
  const double total_share = 8 * draw(), width_share = draw(), area_share = draw();
  const double blame_share = order % 2 == 0 ? 4 * draw() : 0;
  std::vector<std::pair<std::array<double, 3>, int>> keyed;
  for (const int i : chosen) {
    const Item& item = island_.items[i];
    const double total = most(crowd, item), width = item.end - item.begin, area = width * double(item.size);
    const std::array<std::array<double, 3>, kOrderings> plain = {
        {{total, area, width}, {width, area, total}, {area, total, width}, {total, width, area}}};
    const double mixed = total_share * std::log2(total) + width_share * std::log2(width) +
                         area_share * std::log2(area) + blame_share * std::log2(1 + most(blame_, item)) +
                         2 * draw();
    keyed.push_back({order < kOrderings ? plain[order] : std::array<double, 3>{mixed, 0, 0}, i});
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  for (int r = 0; r < std::ssize(keyed); ++r) rank_[keyed[r].second] = r;
}

PackVerdict Packer::pack(const std::vector<int>& chosen, int64_t node_limit, Deadline& deadline) {
  // Plain orders get ever longer tries: one of them packs most sets, and a set that cannot be packed is seen
  // as such by the first try that is long enough. As many nodes again go to short tries in other orders:
  // luck.
  std::fill(blame_.begin(), blame_.end(), 0);
  int lucky = 0;
  for (int64_t patience = kShortTry; node_limit > 0; patience *= 2) {
    for (int order = 0; order < kOrderings; ++order) {
      const int64_t before = node_limit;
      const PackVerdict verdict = try_order(chosen, order, patience, node_limit, deadline);
      if (verdict != PackVerdict::kGaveUp || node_limit <= 0 || deadline.passed()) return verdict;
      for (const int64_t until = std::max<int64_t>(0, node_limit - (before - node_limit)); node_limit > until;
           ++lucky) {
        const int64_t nodes = kShortTry * luby(lucky + 1);
        const PackVerdict luck = try_order(chosen, kOrderings + lucky, nodes, node_limit, deadline);
        if (luck != PackVerdict::kGaveUp || deadline.passed()) return luck;
      }
    }
  }
  return PackVerdict::kGaveUp;
}

PackVerdict Packer::try_order(const std::vector<int>& chosen, int order, int64_t nodes, int64_t& node_limit,
                              Deadline& deadline) {
  rank_items(chosen, order);
  nodes_left_ = std::min(nodes, node_limit);
  node_limit -= nodes_left_;
  return pack_in_order(chosen, deadline);
}

PackVerdict Packer::pack_in_order(const std::vector<int>& chosen, Deadline& deadline) {
  std::fill(taking_part_.begin(), taking_part_.end(), false);
  std::fill(open_load_.begin(), open_load_.end(), 0);
  for (const int i : chosen) {
    taking_part_[i] = true;
    offset_[i] = -1;
    support_[i] = std::max<int64_t>(0, island_.items[i].fixed);
    change_open_load(i, island_.items[i].room);
  }
  open_items_ = chosen;
  open_items_.reserve(chosen.size() * (chosen.size() + 3) / 2);
  std::sort(open_items_.begin(), open_items_.end(), [&](int a, int b) {
    return std::pair(island_.items[a].begin, a) < std::pair(island_.items[b].begin, b);
  });
  trail_.clear();
  trail_marks_.clear();
  hopeless_.clear();
  return search(Items(open_items_), {}, deadline);
}

PackVerdict Packer::search(Items open, Frontier last, Deadline& deadline) {
  if (open.empty()) return PackVerdict::kPacked;
  if (--nodes_left_ < 0 || deadline.passed()) return PackVerdict::kGaveUp;
  int64_t widths = 0;
  for (const int i : open) widths += island_.items[i].end - island_.items[i].begin;
  deadline.spend(kNodeWork + 4 * std::ssize(open) + widths);
  if (tricks_.decompose) {
    if (std::vector<Items> parts = cut_parts(open); parts.size() > 1) {
      return search_parts(open, std::move(parts), last, deadline);
    }
  }
  return sections_hold(open, last) ? search_moves(open, last, deadline) : PackVerdict::kImpossible;
}

/// `open` is sorted by begin, so one sweep finds where no open item crosses.
std::vector<Packer::Items> Packer::cut_parts(Items open) const {
  std::vector<Items> parts;
  size_t first = 0;
  int sea = island_.items[open.front()].end;
  for (size_t next = 1; next < open.size(); ++next) {
    const Item& item = island_.items[open[next]];
    if (item.begin >= sea) {
      parts.push_back(open.subspan(first, next - first));
      first = next;
    }
    sea = std::max(sea, item.end);
  }
  parts.push_back(open.subspan(first));
  return parts;
}

PackVerdict Packer::search_parts(Items open, std::vector<Items> parts, Frontier last, Deadline& deadline) {
  // A part that cannot be packed ends the node; the smallest says so soonest.
  std::stable_sort(parts.begin(), parts.end(), [](Items a, Items b) { return a.size() < b.size(); });
  for (const Items part : parts) {
    if (!sections_hold(part, last)) return PackVerdict::kImpossible;
  }
  const size_t depth = trail_marks_.size();
  for (const Items part : parts) {
    const PackVerdict verdict = search_moves(part, last, deadline);
    if (verdict == PackVerdict::kPacked) continue;
    // Earlier parts were packed for nothing: forget their moves.
    while (trail_marks_.size() > depth) restore_supports();
    for (const int i : open) reopen(i);
    return verdict;
  }
  return PackVerdict::kPacked;
}

/// Two hashes of what decides the fate of these items: which they are, their supports, and the frontier.
Packer::State Packer::state_of(Items open, Frontier last) const {
  State state = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
  const auto mix = [&](uint64_t word) {
    state.a = (state.a ^ word) * 0xff51afd7ed558ccdu;
    state.a ^= state.a >> 32;
    state.b = (state.b + word) * 0xc4ceb9fe1a85ec53u;
    state.b ^= state.b >> 29;
  };
  mix(uint64_t(last.base));
  mix(uint64_t(last.rank));
  for (const int i : open) {
    mix(uint64_t(i));
    mix(uint64_t(support_[i]));
  }
  return state;
}

PackVerdict Packer::search_moves(Items open, Frontier last, Deadline& deadline) {
  const State state = tricks_.memory ? state_of(open, last) : State{};
  if (tricks_.memory && hopeless_.contains(state)) return PackVerdict::kImpossible;
  for (const Move& move : moves(open, last)) {
    lay(move);
    const size_t begin = open_items_.size();
    for (const int i : open) {
      if (offset_[i] < 0) open_items_.push_back(i);
    }
    const Items rest(open_items_.data() + begin, open_items_.size() - begin);
    const PackVerdict verdict = search(rest, {move.base, move.rank}, deadline);
    open_items_.resize(begin);
    if (verdict == PackVerdict::kPacked) return verdict;
    take_back(move);
    if (verdict == PackVerdict::kGaveUp) return verdict;
  }
  if (tricks_.memory && hopeless_.size() < kMostStates) hopeless_.insert(state);
  return PackVerdict::kImpossible;
}

/// A lone item at this height would have come earlier in the sequence: something must still come under it.
bool Packer::waits(int item, Frontier last) const {
  return tricks_.ordered && std::pair(support_[item], rank_[item]) <= std::pair(last.base, last.rank);
}

bool Packer::may_take_over(int child) const {
  const auto& parents = island_.items[child].parents;
  return std::any_of(parents.begin(), parents.end(),
                     [&](int p) { return taking_part_[p] && offset_[p] < 0; });
}

bool Packer::loads_fit(Items open, Span span) {
  std::fill(load_.begin() + span.begin, load_.begin() + span.end, 0);
  std::fill(lowest_.begin() + span.begin, lowest_.begin() + span.end, kHigh);
  for (const int i : open) {
    const Item& item = island_.items[i];
    const int64_t least = least_[i];
    if (least + item.size > island_.capacity || (item.fixed >= 0 && least > item.fixed)) return false;
    // A child that may still take over a slot may need no room in its first section.
    for (int t = item.begin + (may_take_over(i) ? 1 : 0); t < item.end; ++t) {
      load_[t] += item.room;
      lowest_[t] = std::min(lowest_[t], least);
    }
  }
  for (int t = span.begin; t < span.end; ++t) {
    if (load_[t] > 0 && lowest_[t] + load_[t] > island_.height) {
      ++blame_[t];
      return false;
    }
  }
  return true;
}

/// Raises `least_` of waiting items to the lowest top that could come under them. False: none can.
bool Packer::lift_waiting(Items open, Span span, Frontier last, bool& raised) {
  if (std::none_of(open.begin(), open.end(), [&](int i) { return waits(i, last); })) return true;
  std::fill(top1_.begin() + span.begin, top1_.begin() + span.end, kHigh);
  std::fill(top2_.begin() + span.begin, top2_.begin() + span.end, kHigh);
  std::fill(top1_of_.begin() + span.begin, top1_of_.begin() + span.end, -1);
  for (const int i : open) {
    const Item& item = island_.items[i];
    const int64_t top = least_[i] + item.size;
    for (int t = item.begin; t < item.end; ++t) {
      if (top < top1_[t]) {
        top2_[t] = top1_[t];
        top1_[t] = top;
        top1_of_[t] = i;
      } else if (top < top2_[t]) {
        top2_[t] = top;
      }
    }
  }
  for (const int i : open) {
    const Item& item = island_.items[i];
    if (item.fixed >= 0 && item.fixed < last.base) return false;
    // A pair on a common base may be held up by the partner's support instead.
    if (!waits(i, last) || item.fixed >= 0 || !item.parents.empty() || !item.children.empty()) continue;
    int64_t under = kHigh;
    for (int t = item.begin; t < item.end; ++t)
      under = std::min(under, top1_of_[t] == i ? top2_[t] : top1_[t]);
    if (under == kHigh) return false;
    if (const int64_t lifted = round_up(under, item.align); lifted > least_[i]) {
      least_[i] = lifted;
      raised = true;
    }
  }
  return true;
}

/// What the frontier alone says: above it, every section must hold all its open items. Cheap, and most often
/// enough. Children of open parents may need no room in their first section, so they are left out.
bool Packer::frontier_leaves_room(Span span, Frontier last) {
  for (int t = span.begin; t < span.end; ++t) {
    if (open_load_[t] > 0 && last.base + open_load_[t] > island_.height) {
      ++blame_[t];
      return false;
    }
  }
  return true;
}

bool Packer::sections_hold(Items open, Frontier last) {
  Span span = {island_.items[open.front()].begin, 0};
  for (const int i : open) span.end = std::max(span.end, island_.items[i].end);
  const bool floors = tricks_.floors && tricks_.ordered;
  if (floors && !frontier_leaves_room(span, last)) return false;
  for (const int i : open) {
    const Item& item = island_.items[i];
    least_[i] = support_[i];
    if (floors) least_[i] = std::max(least_[i], round_up(last.base, item.align));
    if (item.fixed >= 0) least_[i] = std::max(support_[i], item.fixed);
  }
  if (!loads_fit(open, span)) return false;
  if (!floors) return true;
  bool raised = false;
  return lift_waiting(open, span, last, raised) && (!raised || loads_fit(open, span));
}

void Packer::extend_chain(Move move, std::vector<Move>& out) const {
  out.push_back(move);
  const int end = move.followers.empty() ? move.head : move.followers.back();
  for (const int child : island_.items[end].children) {
    if (!taking_part_[child] || offset_[child] >= 0) continue;
    Move longer = move;
    longer.followers.push_back(child);
    int64_t align = island_.items[move.head].align;
    for (const int i : longer.followers) align = std::lcm(align, island_.items[i].align);
    longer.base = round_up(std::max(move.base, support_[child]), align);
    extend_chain(std::move(longer), out);
  }
}

std::vector<Packer::Move> Packer::moves(Items open, Frontier last) const {
  int64_t ceiling = kHigh;
  for (const int i : open) ceiling = std::min(ceiling, support_[i] + island_.items[i].size);
  const auto pointless = [&](int64_t base, int rank) {
    if (tricks_.ordered && std::pair(base, rank) <= std::pair(last.base, last.rank)) return true;
    return tricks_.ordered && tricks_.dominance && base >= ceiling;
  };
  const auto fits = [&](int i, int64_t base) {
    const Item& item = island_.items[i];
    return base + item.size <= island_.capacity && (item.fixed < 0 || item.fixed == base);
  };
  std::vector<Move> all;
  for (const int i : open) {
    if (island_.items[i].children.empty() && pointless(support_[i], rank_[i])) continue;
    extend_chain({.base = support_[i], .rank = rank_[i], .head = i}, all);
  }
  std::erase_if(all, [&](const Move& move) {
    return pointless(move.base, move.rank) || !fits(move.head, move.base) ||
           !std::all_of(move.followers.begin(), move.followers.end(),
                        [&](int i) { return fits(i, move.base); });
  });
  // Low first, then by rank; a longer chain saves room, so it comes first.
  std::stable_sort(all.begin(), all.end(), [](const Move& a, const Move& b) {
    return std::tuple(a.base, a.rank, -std::ssize(a.followers)) <
           std::tuple(b.base, b.rank, -std::ssize(b.followers));
  });
  return all;
}

void Packer::change_open_load(int item, int64_t bytes) {
  // A child may yet take over a slot: what it needs in its first section is not certain.
  const Item& it = island_.items[item];
  for (int t = it.begin + (it.parents.empty() ? 0 : 1); t < it.end; ++t) open_load_[t] += bytes;
}

void Packer::reopen(int item) {
  if (offset_[item] >= 0) change_open_load(item, island_.items[item].room);
  offset_[item] = -1;
}

void Packer::lay_one(int item, int64_t base) {
  offset_[item] = base;
  change_open_load(item, -island_.items[item].room);
}

void Packer::raise_neighbours(int item) {
  const int64_t top = offset_[item] + island_.items[item].size;
  for (const int j : neighbours_[item]) {
    if (!taking_part_[j] || offset_[j] >= 0) continue;
    if (const int64_t raised = round_up(top, island_.items[j].align); raised > support_[j]) {
      trail_.push_back({j, support_[j]});
      support_[j] = raised;
    }
  }
}

void Packer::lay(const Move& move) {
  trail_marks_.push_back(trail_.size());
  lay_one(move.head, move.base);
  for (const int i : move.followers) lay_one(i, move.base);
  raise_neighbours(move.head);
  for (const int i : move.followers) raise_neighbours(i);
}

void Packer::restore_supports() {
  for (; trail_.size() > trail_marks_.back(); trail_.pop_back()) {
    support_[trail_.back().first] = trail_.back().second;
  }
  trail_marks_.pop_back();
}

void Packer::take_back(const Move& move) {
  restore_supports();
  reopen(move.head);
  for (const int i : move.followers) reopen(i);
}

}  // namespace spyre::solve
