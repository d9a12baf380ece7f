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
constexpr int64_t kShortTry = 400;  // nodes

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
void Packer::rank_items(const std::vector<int>& chosen, int attempt) {
  std::vector<int64_t> crowd(island_.sections, 0);
  for (const int i : chosen) {
    for (int t = island_.items[i].begin; t < island_.items[i].end; ++t) crowd[t] += island_.items[i].room;
  }
  const auto most = [](const std::vector<int64_t>& of, const Item& item) {
    return double(*std::max_element(of.begin() + item.begin, of.begin() + item.end));
  };
  std::mt19937_64 random(attempt);
  const auto draw = [&] { return double(random() >> 11) * 0x1p-53; };
  const double total_share = 8 * draw(), width_share = draw(), area_share = draw();
  const double blame_share = attempt % 3 == 2 ? 4 * draw() : 0;
  std::vector<std::pair<std::array<double, 3>, int>> keyed;
  for (const int i : chosen) {
    const Item& item = island_.items[i];
    const double total = most(crowd, item), width = item.end - item.begin, area = width * double(item.size);
    const std::array<std::array<double, 3>, kOrderings> plain = {
        {{total, area, width}, {width, area, total}, {area, total, width}, {total, width, area}}};
    const double mixed = total_share * std::log2(total) + width_share * std::log2(width) +
                         area_share * std::log2(area) + blame_share * std::log2(1 + most(blame_, item)) +
                         2 * draw();
    const bool is_plain = attempt % 3 == 0;
    keyed.push_back({is_plain ? plain[attempt / 3 % kOrderings] : std::array<double, 3>{mixed, 0, 0}, i});
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  for (int r = 0; r < std::ssize(keyed); ++r) rank_[keyed[r].second] = r;
}

PackVerdict Packer::pack(const std::vector<int>& chosen, int64_t node_limit, Deadline& deadline) {
  // Many short tries, plain and mixed orders in turn, some longer ones in between: a lucky order packs at
  // once, and a set that cannot be packed is seen as such by the first try that is long enough.
  for (int attempt = 0; node_limit > 0; ++attempt) {
    rank_items(chosen, attempt);
    nodes_left_ = std::min(kShortTry * luby(attempt + 1), node_limit);
    node_limit -= nodes_left_;
    const PackVerdict verdict = pack_in_order(chosen, deadline);
    if (verdict != PackVerdict::kGaveUp || deadline.passed()) return verdict;
  }
  return PackVerdict::kGaveUp;
}

PackVerdict Packer::pack_in_order(const std::vector<int>& chosen, Deadline& deadline) {
  std::fill(taking_part_.begin(), taking_part_.end(), false);
  std::fill(open_load_.begin(), open_load_.end(), 0);
  std::vector<int> open = chosen;
  for (const int i : chosen) {
    taking_part_[i] = true;
    offset_[i] = -1;
    support_[i] = std::max<int64_t>(0, island_.items[i].fixed);
    change_open_load(i, island_.items[i].room);
  }
  std::sort(open.begin(), open.end(), [&](int a, int b) {
    return std::pair(island_.items[a].begin, a) < std::pair(island_.items[b].begin, b);
  });
  trail_.clear();
  trail_marks_.clear();
  return search(std::move(open), {}, deadline);
}

PackVerdict Packer::search(std::vector<int> open, Frontier last, Deadline& deadline) {
  if (open.empty()) return PackVerdict::kPacked;
  if (--nodes_left_ < 0 || deadline.passed()) return PackVerdict::kGaveUp;
  int64_t widths = 0;
  for (const int i : open) widths += island_.items[i].end - island_.items[i].begin;
  deadline.spend(4 * std::ssize(open) + widths);
  if (tricks_.decompose) return search_parts(open, last, deadline);
  return sections_hold(open, last) ? search_moves(open, last, deadline) : PackVerdict::kImpossible;
}

/// `open` is sorted by begin, so one sweep finds where no open item crosses.
PackVerdict Packer::search_parts(const std::vector<int>& open, Frontier last, Deadline& deadline) {
  std::vector<std::vector<int>> parts;
  int sea = -1;
  for (const int i : open) {
    if (island_.items[i].begin >= sea) parts.emplace_back();
    parts.back().push_back(i);
    sea = std::max(sea, island_.items[i].end);
  }
  if (parts.size() == 1)
    return sections_hold(open, last) ? search_moves(open, last, deadline) : PackVerdict::kImpossible;
  // A part that cannot be packed ends the node; the smallest says so soonest.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (const std::vector<int>& part : parts) {
    if (!sections_hold(part, last)) return PackVerdict::kImpossible;
  }
  const size_t depth = trail_marks_.size();
  for (const std::vector<int>& part : parts) {
    const PackVerdict verdict = search_moves(part, last, deadline);
    if (verdict == PackVerdict::kPacked) continue;
    // Earlier parts were packed for nothing: forget their moves.
    while (trail_marks_.size() > depth) restore_supports();
    for (const int i : open) reopen(i);
    return verdict;
  }
  return PackVerdict::kPacked;
}

PackVerdict Packer::search_moves(const std::vector<int>& open, Frontier last, Deadline& deadline) {
  for (const Move& move : moves(open, last)) {
    lay(move);
    std::vector<int> rest;
    rest.reserve(open.size());
    for (const int i : open) {
      if (offset_[i] < 0) rest.push_back(i);
    }
    const PackVerdict verdict = search(std::move(rest), {move.base, move.rank}, deadline);
    if (verdict == PackVerdict::kPacked) return verdict;
    take_back(move);
    if (verdict == PackVerdict::kGaveUp) return verdict;
  }
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

bool Packer::loads_fit(const std::vector<int>& open) {
  const auto low = [&](int i) { return least_[i]; };
  for (const int i : open) {
    const Item& item = island_.items[i];
    if (low(i) + item.size > island_.capacity || (item.fixed >= 0 && low(i) > item.fixed)) return false;
    std::fill(load_.begin() + item.begin, load_.begin() + item.end, 0);
    std::fill(lowest_.begin() + item.begin, lowest_.begin() + item.end, kHigh);
  }
  for (const int i : open) {
    const Item& item = island_.items[i];
    // A child that may still take over a slot may need no room in its first section.
    const int first = item.begin + (may_take_over(i) ? 1 : 0);
    for (int t = first; t < item.end; ++t) {
      load_[t] += item.room;
      lowest_[t] = std::min(lowest_[t], low(i));
    }
  }
  for (const int i : open) {
    const Item& item = island_.items[i];
    for (int t = item.begin; t < item.end; ++t) {
      if (load_[t] > 0 && lowest_[t] + load_[t] > island_.height) {
        ++blame_[t];
        return false;
      }
    }
  }
  return true;
}

/// Raises `least_` of waiting items to the lowest top that could come under them. False: none can.
bool Packer::lift_waiting(const std::vector<int>& open, Frontier last, bool& raised) {
  bool any = false;
  for (const int i : open) any = any || waits(i, last);
  if (!any) return true;
  for (const int i : open) {
    const Item& item = island_.items[i];
    std::fill(top1_.begin() + item.begin, top1_.begin() + item.end, kHigh);
    std::fill(top2_.begin() + item.begin, top2_.begin() + item.end, kHigh);
    std::fill(top1_of_.begin() + item.begin, top1_of_.begin() + item.end, -1);
  }
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
bool Packer::frontier_leaves_room(const std::vector<int>& open, Frontier last) {
  int end = 0;
  for (const int i : open) end = std::max(end, island_.items[i].end);
  for (int t = island_.items[open.front()].begin; t < end; ++t) {
    if (open_load_[t] > 0 && last.base + open_load_[t] > island_.height) {
      ++blame_[t];
      return false;
    }
  }
  return true;
}

bool Packer::sections_hold(const std::vector<int>& open, Frontier last) {
  const bool floors = tricks_.floors && tricks_.ordered;
  if (floors && !frontier_leaves_room(open, last)) return false;
  for (const int i : open) {
    const Item& item = island_.items[i];
    least_[i] = support_[i];
    if (floors) least_[i] = std::max(least_[i], round_up(last.base, item.align));
    if (item.fixed >= 0) least_[i] = std::max(support_[i], item.fixed);
  }
  if (!loads_fit(open)) return false;
  if (!floors) return true;
  bool raised = false;
  return lift_waiting(open, last, raised) && (!raised || loads_fit(open));
}

void Packer::extend_chain(Move move, std::vector<Move>& out) const {
  out.push_back(move);
  for (const int child : island_.items[move.chain.back()].children) {
    if (!taking_part_[child] || offset_[child] >= 0) continue;
    Move longer = move;
    longer.chain.push_back(child);
    int64_t align = 1;
    for (const int i : longer.chain) align = std::lcm(align, island_.items[i].align);
    longer.base = round_up(std::max(move.base, support_[child]), align);
    extend_chain(std::move(longer), out);
  }
}

std::vector<Packer::Move> Packer::moves(const std::vector<int>& open, Frontier last) const {
  int64_t ceiling = kHigh;
  for (const int i : open) ceiling = std::min(ceiling, support_[i] + island_.items[i].size);
  const auto pointless = [&](int64_t base, int rank) {
    if (tricks_.ordered && std::pair(base, rank) <= std::pair(last.base, last.rank)) return true;
    return tricks_.ordered && tricks_.dominance && base >= ceiling;
  };
  std::vector<Move> all;
  for (const int i : open) {
    if (island_.items[i].children.empty() && pointless(support_[i], rank_[i])) continue;
    extend_chain({.base = support_[i], .rank = rank_[i], .chain = {i}}, all);
  }
  std::erase_if(all, [&](const Move& move) {
    return pointless(move.base, move.rank) || std::any_of(move.chain.begin(), move.chain.end(), [&](int i) {
             const Item& item = island_.items[i];
             return move.base + item.size > island_.capacity || (item.fixed >= 0 && item.fixed != move.base);
           });
  });
  // Low first, then by rank; a longer chain saves room, so it comes first.
  std::stable_sort(all.begin(), all.end(), [](const Move& a, const Move& b) {
    return std::tuple(a.base, a.rank, -std::ssize(a.chain)) <
           std::tuple(b.base, b.rank, -std::ssize(b.chain));
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

void Packer::lay(const Move& move) {
  trail_marks_.push_back(trail_.size());
  for (const int i : move.chain) {
    offset_[i] = move.base;
    change_open_load(i, -island_.items[i].room);
  }
  for (const int i : move.chain) {
    const int64_t top = move.base + island_.items[i].size;
    for (const int j : neighbours_[i]) {
      if (!taking_part_[j] || offset_[j] >= 0) continue;
      if (const int64_t raised = round_up(top, island_.items[j].align); raised > support_[j]) {
        trail_.push_back({j, support_[j]});
        support_[j] = raised;
      }
    }
  }
}

void Packer::restore_supports() {
  for (; trail_.size() > trail_marks_.back(); trail_.pop_back()) {
    support_[trail_.back().first] = trail_.back().second;
  }
  trail_marks_.pop_back();
}

void Packer::take_back(const Move& move) {
  restore_supports();
  for (const int i : move.chain) reopen(i);
}

}  // namespace spyre::solve
