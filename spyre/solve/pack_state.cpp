#include "spyre/solve/pack_state.h"

#include <algorithm>
#include <span>

#include "spyre/base/units.h"

namespace spyre::solve {

PackState::PackState(const Island& island) : island_(island), laid_(std::ssize(island.items)) {
  const int n = std::ssize(island.items);
  neighbours_.resize(n);
  neighbour_set_.assign(n, ItemSet(n));
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const Item &a = island.items[i], &b = island.items[j];
      if (i == j || a.begin >= b.end || b.begin >= a.end) continue;
      neighbours_[i].push_back(j);
      neighbour_set_[i].insert(j);
    }
  }
  open_.assign(n, 0);
  around_chains_.assign(n, ItemSet(n));
  heads_around_.assign(n, ItemSet(n));
  twins_.resize(n);
  ancestors_.resize(n);
  descendants_.resize(n);
  offset_.assign(n, -1);
  support_.assign(n, 0);
  supporter_.assign(n, -1);
  reason_.assign(n, -1);
}

void PackState::choose(const std::vector<int>& chosen) {
  chosen_ = chosen;
  restart();
  const auto collect = [&](int from, auto next, std::vector<int>& all) {
    all = {from};
    for (size_t at = 0; at < all.size(); ++at) {
      for (const int other : next(item(all[at]))) {
        if (open_[other] && std::find(all.begin(), all.end(), other) == all.end()) all.push_back(other);
      }
    }
  };
  for (const int i : chosen) {
    collect(
        i, [](const Item& of) { return std::span(of.parents); }, ancestors_[i]);
    collect(
        i, [](const Item& of) { return std::span(of.children); }, descendants_[i]);
    heads_around_[i] = around_chains_[i] = neighbour_set_[i];
  }
  for (const int i : chosen) {
    for (const int member : descendants_[i]) {
      if (member == i) continue;
      around_chains_[i] |= neighbour_set_[member];
      for (const int j : neighbours_[member]) heads_around_[j].insert(i);
    }
    twins_[i].clear();
    for (const int j : neighbours_[i]) {
      const Item &a = item(i), &b = item(j);
      const bool same = a.begin == b.begin && a.end == b.end && a.size == b.size && a.align == b.align &&
                        a.fixed < 0 && b.fixed < 0;
      if (same && open_[j] && single(i) && single(j)) twins_[i].push_back(j);
    }
  }
}

void PackState::restart() {
  std::fill(open_.begin(), open_.end(), 0);
  for (const int i : chosen_) {
    open_[i] = 1;
    support_[i] = std::max<int64_t>(0, item(i).fixed);
    supporter_[i] = -1;
    reason_[i] = -1;
  }
  laid_.clear();
  reason_count_ = 0;
  trail_.clear();
}

bool PackState::single(int i) const {
  const auto is_open = [&](int other) { return bool(open_[other]); };
  return std::none_of(item(i).parents.begin(), item(i).parents.end(), is_open) &&
         std::none_of(item(i).children.begin(), item(i).children.end(), is_open);
}

bool PackState::may_take_over(int child) const {
  const auto& parents = item(child).parents;
  return std::any_of(parents.begin(), parents.end(), [&](int p) { return bool(open_[p]); });
}

void PackState::lay_one(int i, int64_t base) {
  offset_[i] = base;
  open_[i] = 0;
  laid_.insert(i);
  trail_.push_back({.item = i, .laid = true});
}

void PackState::stop_waiting(int i) {
  if (!open_[i] || reason_[i] < 0) return;
  trail_.push_back({i, false, support_[i], supporter_[i], reason_[i]});
  reason_[i] = -1;
}

/// Item i is open and meets an item that was just laid.
void PackState::meet(int i, int laid) {
  const int64_t raised = round_up(offset_[laid] + item(laid).size, item(i).align);
  if (raised > support_[i]) {
    trail_.push_back({i, false, support_[i], supporter_[i], reason_[i]});
    support_[i] = raised;
    supporter_[i] = laid;
    reason_[i] = -1;
  }
  for (const int head : ancestors_[i]) stop_waiting(head);
}

void PackState::lay(const std::vector<int>& chain, int64_t base) {
  for (const int i : chain) lay_one(i, base);
  for (const int i : chain) {
    for (const int j : neighbours_[i]) {
      if (open_[j]) meet(j, i);
    }
  }
}

void PackState::wait(int i, const ItemSet& reason) {
  trail_.push_back({i, false, support_[i], supporter_[i], reason_[i]});
  if (reason_count_ == std::ssize(reasons_)) reasons_.emplace_back(std::ssize(island_.items));
  reasons_[reason_count_] = reason;
  reason_[i] = reason_count_++;
}

void PackState::undo_to(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Change& change = trail_.back();
    if (change.laid) {
      open_[change.item] = 1;
      laid_.erase(change.item);
      continue;
    }
    // Reasons lie in the order of their waits: the last one goes first.
    if (change.reason < 0 && reason_[change.item] >= 0) reason_count_ = reason_[change.item];
    support_[change.item] = change.support;
    supporter_[change.item] = change.supporter;
    reason_[change.item] = change.reason;
  }
}

}  // namespace spyre::solve
