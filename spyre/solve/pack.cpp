#include "spyre/solve/pack.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "spyre/base/units.h"
#include "spyre/solve/pack_order.h"

namespace spyre::solve {
namespace {

constexpr int64_t kShortTry = 200;       // nodes
constexpr int64_t kNodeWork = 200;       // units, besides what depends on the items
constexpr size_t kMostStates = 1 << 20;  // remembered at a time

/// Luby's sequence 1 1 2 1 1 2 4 1 1 2 ...: restart lengths within a logarithm of the best for any problem.
int64_t luby(int64_t i) {
  const int64_t power = int64_t{1} << std::bit_width(uint64_t(i));
  return i == power - 1 ? power / 2 : luby(i - power / 2 + 1);
}

}  // namespace

Packer::Packer(const Island& island, PackTricks tricks)
    : island_(island), tricks_(tricks), state_(island), inference_(state_, tricks_) {}

PackVerdict Packer::pack(const std::vector<int>& chosen, int64_t node_limit, Deadline& deadline) {
  // Plain orders get ever longer tries: one of them packs most sets, and a set that cannot be packed is seen
  // as such by the first try that is long enough; half of the nodes are kept for a last one. Between them
  // come short tries in other orders: luck.
  int lucky = 0;
  state_.choose(chosen);
  const auto attempt = [&](int order, int64_t nodes) {
    nodes = std::min(nodes, node_limit);
    node_limit -= nodes;
    return pack_in_order(chosen, order, nodes, deadline);
  };
  const int64_t long_try = node_limit / 2;
  for (int64_t patience = kShortTry; node_limit > long_try; patience *= 8) {
    for (int order = 0; order < kPlainOrders && node_limit > long_try; ++order) {
      PackVerdict verdict = attempt(order, patience);
      const int64_t enough = node_limit - patience / 4;
      while (verdict == PackVerdict::kGaveUp && node_limit > std::max<int64_t>(0, enough) &&
             !deadline.passed()) {
        ++lucky;
        verdict = attempt(kPlainOrders + lucky, kShortTry * luby(lucky));
      }
      if (verdict != PackVerdict::kGaveUp || deadline.passed()) return verdict;
    }
  }
  return attempt(0, node_limit);
}

PackVerdict Packer::pack_in_order(const std::vector<int>& chosen, int order, int64_t nodes,
                                  Deadline& deadline) {
  rank_ = rank_items(island_, chosen, order, inference_.blame());
  nodes_left_ = nodes;
  state_.restart();
  hopeless_.clear();
  open_items_ = chosen;
  open_items_.reserve(chosen.size() * (chosen.size() + 3) / 2);
  std::sort(open_items_.begin(), open_items_.end(), [&](int a, int b) {
    return std::pair(island_.items[a].begin, a) < std::pair(island_.items[b].begin, b);
  });
  return search(Items(open_items_), deadline);
}

PackVerdict Packer::search(Items open, Deadline& deadline) {
  if (open.empty()) return PackVerdict::kPacked;
  if (tricks_.decompose) {
    if (std::vector<Items> parts = cut_parts(open); parts.size() > 1)
      return search_parts(std::move(parts), deadline);
  }
  return search_connected(open, deadline);
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

PackVerdict Packer::search_parts(std::vector<Items> parts, Deadline& deadline) {
  // A part that cannot be packed ends the node; the smallest says so soonest.
  std::stable_sort(parts.begin(), parts.end(), [](Items a, Items b) { return a.size() < b.size(); });
  const size_t mark = state_.mark();
  for (const Items part : parts) {
    const bool holds = inference_.holds(part);
    state_.undo_to(mark);
    if (!holds) return PackVerdict::kImpossible;
  }
  for (const Items part : parts) {
    const PackVerdict verdict = search_connected(part, deadline);
    if (verdict == PackVerdict::kPacked) continue;
    state_.undo_to(mark);
    return verdict;
  }
  return PackVerdict::kPacked;
}

PackVerdict Packer::search_connected(Items open, Deadline& deadline) {
  if (--nodes_left_ < 0 || deadline.passed()) return PackVerdict::kGaveUp;
  const Fingerprint print = tricks_.memory ? fingerprint(open) : Fingerprint{};
  if (tricks_.memory && hopeless_.contains(print)) {
    blame_all_around(open);
    return PackVerdict::kImpossible;
  }
  const size_t mark = state_.mark();
  PackVerdict verdict = PackVerdict::kImpossible;
  while (verdict == PackVerdict::kImpossible) {
    const bool holds = inference_.holds(open);
    deadline.spend(kNodeWork + inference_.take_work());
    if (!holds) break;
    const int head = lowest(open);
    verdict = lay_lowest(open, head, deadline);
    if (verdict == PackVerdict::kImpossible && !state_.waits(head)) break;
  }
  if (verdict == PackVerdict::kPacked) return verdict;
  state_.undo_to(mark);
  if (verdict == PackVerdict::kImpossible && tricks_.memory && hopeless_.size() < kMostStates)
    hopeless_.insert(print);
  return verdict;
}

/// Tries to lay the head alone and in each of its chains. If that is impossible it waits afterwards, unless
/// the failure has nothing to do with it: then there is no need to try anything else.
PackVerdict Packer::lay_lowest(Items open, int head, Deadline& deadline) {
  ItemSet reason(std::ssize(island_.items));
  for (const Chain& chain : chains_from(head)) {
    if (!fits(chain)) continue;
    const size_t mark = state_.mark();
    state_.lay(chain.items, chain.base);
    const size_t begin = open_items_.size();
    for (const int i : open) {
      if (state_.open(i)) open_items_.push_back(i);
    }
    const PackVerdict verdict =
        search(Items(open_items_.data() + begin, open_items_.size() - begin), deadline);
    open_items_.resize(begin);
    if (verdict == PackVerdict::kPacked) return verdict;
    state_.undo_to(mark);
    if (verdict == PackVerdict::kGaveUp) return verdict;
    const ItemSet& conflict = inference_.conflict();
    const bool involved =
        std::any_of(chain.items.begin(), chain.items.end(), [&](int i) { return conflict.contains(i); });
    if (tricks_.jump && !involved) return PackVerdict::kImpossible;
    reason |= conflict;
  }
  make_wait(head, reason);
  return PackVerdict::kImpossible;
}

/// What could not be laid waits, and so do items that differ from it in name only.
void Packer::make_wait(int head, const ItemSet& failures) {
  ItemSet reason = failures;
  reason.insert_common(state_.around_chains(head), state_.laid());
  for (const int i : state_.descendants(head)) {
    if (state_.open(i)) reason.erase(i);
  }
  state_.wait(head, reason);
  for (const int twin : state_.twins(head)) {
    if (state_.open(twin) && !state_.waits(twin)) state_.wait(twin, reason);
  }
}

int Packer::lowest(Items open) const {
  int best = -1;
  for (const int i : open) {
    if (state_.waits(i)) continue;
    if (best < 0 || std::pair(state_.support(i), rank_[i]) < std::pair(state_.support(best), rank_[best]))
      best = i;
  }
  return best;
}

void Packer::extend_chain(Chain chain, std::vector<Chain>& out) const {
  out.push_back(chain);
  for (const int child : island_.items[chain.items.back()].children) {
    if (!state_.open(child)) continue;
    Chain longer = chain;
    longer.items.push_back(child);
    int64_t align = 1;
    for (const int i : longer.items) align = std::lcm(align, island_.items[i].align);
    longer.base = round_up(std::max(chain.base, state_.support(child)), align);
    extend_chain(std::move(longer), out);
  }
}

/// Low ones first; of equally low ones the longest, as it saves most room.
std::vector<Packer::Chain> Packer::chains_from(int head) const {
  std::vector<Chain> chains;
  extend_chain({{head}, state_.support(head)}, chains);
  std::stable_sort(chains.begin(), chains.end(), [](const Chain& a, const Chain& b) {
    return std::pair(a.base, -std::ssize(a.items)) < std::pair(b.base, -std::ssize(b.items));
  });
  return chains;
}

bool Packer::fits(const Chain& chain) const {
  return std::all_of(chain.items.begin(), chain.items.end(), [&](int i) {
    const Item& item = island_.items[i];
    return chain.base + item.size <= island_.capacity && (item.fixed < 0 || item.fixed == chain.base);
  });
}

Packer::Fingerprint Packer::fingerprint(Items open) const {
  Fingerprint print = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
  const auto mix = [&](uint64_t word) {
    print.a = (print.a ^ word) * 0xff51afd7ed558ccdu;
    print.a ^= print.a >> 32;
    print.b = (print.b + word) * 0xc4ceb9fe1a85ec53u;
    print.b ^= print.b >> 29;
  };
  for (const int i : open) {
    mix(uint64_t(i) * 2 + (state_.waits(i) ? 1 : 0));
    mix(uint64_t(state_.support(i)));
  }
  return print;
}

/// A conflict that surely explains why these items cannot be packed.
void Packer::blame_all_around(Items open) {
  ItemSet& conflict = inference_.conflict();
  conflict.clear();
  for (const int i : open) {
    conflict.insert_common(state_.neighbour_set(i), state_.laid());
    if (state_.waits(i)) conflict |= state_.wait_reason(i);
  }
}

}  // namespace spyre::solve
