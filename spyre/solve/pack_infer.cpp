#include "spyre/solve/pack_infer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "spyre/base/json.h"
#include "spyre/base/units.h"
#include "spyre/solve/handover.h"

namespace spyre::solve {

PackInference::PackInference(PackState& state, const PackTricks& tricks)
    : state_(state),
      tricks_(tricks),
      conflict_(std::ssize(state.island().items)),
      blame_(state.island().sections, 0),
      least_(state.island().items.size(), 0),
      unlifted_(std::ssize(state.island().items)),
      crowded_(state.island().sections, 0),
      reach_(state.island().sections, 0),
      load_(state.island().sections, 0),
      explained_(state.island().items.size(), 0) {}

int64_t PackInference::take_work() {
  return std::exchange(work_, 0);
}

/// Makes `conflict_` hold reasons for least_[item] >= at_least.
void PackInference::explain(int item, int64_t at_least) {
  const Item& it = state_.item(item);
  if (at_least <= std::max<int64_t>(0, it.fixed) || explained_[item] >= at_least) return;
  if (explained_[item] == 0) touched_.push_back(item);
  explained_[item] = at_least;
  ++work_;
  if (state_.support(item) >= at_least) {
    conflict_.insert(state_.supporter(item));
    return;
  }
  // It waits, and whatever could come under it, or under a chain it is in, ends high enough.
  conflict_ |= state_.wait_reason(item);
  const int64_t top = (at_least - 1) / it.align * it.align + 1;  // from here on its alignment does the rest
  for (const int parent : it.parents) {
    if (state_.open(parent)) explain(parent, top);
  }
  for (const int member : state_.descendants(item)) {
    for (const int j : state_.neighbours(member)) {
      const bool here = state_.item(j).begin < end_ && state_.item(j).end > begin_;
      if (j != item && here && state_.open(j)) explain(j, top - state_.item(j).size);
    }
  }
}

void PackInference::end_explanation() {
  for (const int i : touched_) explained_[i] = 0;
  touched_.clear();
}

/// A waiting item lies on the top of an open one that it meets, or that its chain meets, or where a parent
/// lies. Both are settled in ascending order, as in Dijkstra's algorithm: what comes first is the lowest that
/// is possible.
bool PackInference::find_least(std::span<const int> open) {
  events_.clear();
  int64_t unlifted = 0;
  bool all_wait = true;
  for (const int i : open) {
    least_[i] = state_.support(i);
    all_wait = all_wait && state_.waits(i);
    if (tricks_.lift && state_.waits(i) && state_.item(i).fixed < 0) {
      unlifted_.insert(i);
      ++unlifted;
    }
  }
  if (!all_wait && unlifted > 0) {
    const auto add_event = [&](Event event) {
      events_.push_back(event);
      std::push_heap(events_.begin(), events_.end(), std::greater<>());
    };
    const auto settle = [&](int i) {
      add_event({least_[i] + state_.item(i).size, i, true});
      for (const int child : state_.item(i).children) {
        if (unlifted_.contains(child)) add_event({least_[i], child, false});
      }
    };
    const auto lift = [&](int i, int64_t at) {
      unlifted_.erase(i);
      --unlifted;
      least_[i] = std::max(least_[i], round_up(at, state_.item(i).align));
      settle(i);
    };
    for (const int i : open) {
      if (!unlifted_.contains(i)) settle(i);
    }
    while (!events_.empty() && unlifted > 0) {
      const Event event = events_.front();
      std::pop_heap(events_.begin(), events_.end(), std::greater<>());
      events_.pop_back();
      work_ += 8;
      if (event.is_top) {
        unlifted_.each_common(state_.heads_around(event.item), [&](int i) { lift(i, event.at); });
      } else if (unlifted_.contains(event.item)) {
        lift(event.item, event.at);
      }
    }
  }
  if (!all_wait && unlifted == 0) return true;
  // Nobody can be the lowest.
  conflict_.clear();
  for (const int i : open) {
    if (all_wait || unlifted_.contains(i)) conflict_ |= state_.wait_reason(i);
  }
  unlifted_.clear();
  return false;
}

bool PackInference::sections_hold(std::span<const int> open) {
  by_least_.clear();
  for (const int i : open) {
    const Item& item = state_.item(i);
    const int64_t highest = item.fixed >= 0 ? item.fixed : state_.island().capacity - item.size;
    if (least_[i] > highest) {
      ++blame_[item.begin];
      conflict_.clear();
      explain(i, highest + 1);
      end_explanation();
      return false;
    }
    by_least_.push_back({least_[i], i});
  }
  add_crowded_children(open);
  std::sort(by_least_.begin(), by_least_.end());
  std::fill(reach_.begin() + begin_, reach_.begin() + end_, 0);
  std::fill(load_.begin() + begin_, load_.begin() + end_, 0);
  const int items = std::ssize(state_.island().items);
  for (const auto& [least, i] : by_least_) {
    if (i >= items) {
      reach_[i - items] = std::max(reach_[i - items], least) + crowded_[i - items];
      load_[i - items] += crowded_[i - items];
      continue;
    }
    const Item& item = state_.item(i);
    // A child that may still take over a slot may need no room in its first section.
    for (int t = first_section(i); t < item.end; ++t) {
      reach_[t] = std::max(reach_[t], least) + item.room;
      load_[t] += item.room;
    }
    work_ += item.end - item.begin;
  }
  const auto full = std::find_if(reach_.begin() + begin_, reach_.begin() + end_,
                                 [&](int64_t reach) { return reach > state_.island().height; });
  if (full == reach_.begin() + end_) return true;
  blame_section(full - reach_.begin());
  return false;
}

/// More children may begin in a section than there are open parents to take over from: the rest needs room.
void PackInference::add_crowded_children(std::span<const int> open) {
  guests_.clear();
  for (const int i : open) {
    if (state_.may_take_over(i)) guests_.push_back({state_.item(i).begin, i});
  }
  for (size_t first = 0, next; first < guests_.size(); first = next) {
    const int t = guests_[first].first;
    std::vector<int> hosts;
    std::vector<HandOver> children;
    int64_t room = 0, least = least_[guests_[first].second];
    for (next = first; next < guests_.size() && guests_[next].first == t; ++next) {
      const int child = guests_[next].second;
      HandOver hand_over{state_.item(child).room, 0};
      for (const int parent : state_.item(child).parents) {
        if (!state_.open(parent)) continue;
        const auto at = std::find(hosts.begin(), hosts.end(), parent);
        hand_over.parents |= uint64_t{1} << ((at - hosts.begin()) % 64);
        if (at == hosts.end()) hosts.push_back(parent);
      }
      children.push_back(hand_over);
      room += hand_over.room;
      least = std::min(least, least_[child]);
    }
    if (hosts.size() > 64 || children.size() < 2) continue;
    work_ += 8 * std::ssize(children);
    crowded_[t] = room - most_room_handed_over(std::move(children));
    if (crowded_[t] > 0) by_least_.push_back({least, int(state_.island().items.size()) + t});
  }
}

/// The items stacked without a gap at the section's top are too many for the room above the lowest of them.
void PackInference::blame_section(int t) {
  ++blame_[t];
  const int items = std::ssize(state_.island().items);
  std::vector<int> block;
  int64_t reach = 0, bottom = 0, sum = 0;
  for (const auto& [least, i] : by_least_) {
    const bool crowd = i == items + t;
    const bool here = crowd || (i < items && first_section(i) <= t && t < state_.item(i).end);
    if (!here) continue;
    if (block.empty() || least > reach) {
      block.clear();
      sum = 0;
      reach = bottom = least;
    }
    const int64_t room = crowd ? crowded_[t] : state_.item(i).room;
    block.push_back(i);
    reach += room;
    sum += room;
  }
  const int64_t enough = std::min(bottom, state_.island().height - sum + 1);
  conflict_.clear();
  const auto explain_child = [&](int i) {
    explain(i, enough);
    if (t != state_.item(i).begin) return;
    // A parent that was still open could hand its slot over.
    for (const int parent : state_.item(i).parents) {
      if (state_.laid().contains(parent)) conflict_.insert(parent);
    }
  };
  for (const int i : block) {
    if (i < items) {
      explain_child(i);
      continue;
    }
    for (const auto& [section, guest] : guests_) {
      if (section == t) explain_child(guest);
    }
  }
  end_explanation();
}

/// Of all packings one has the smallest sum of offsets; in it no item could drop. An item that waits is above
/// its support, so some open one lies in the way of dropping there.
bool PackInference::waiting_ones_are_held_up(std::span<const int> open) {
  for (const int i : open) {
    if (!state_.waits(i) || !state_.single(i) || state_.item(i).fixed >= 0) continue;
    const int64_t top = state_.support(i) + state_.item(i).size;
    const auto& around = state_.neighbours(i);
    const bool held_up =
        std::any_of(around.begin(), around.end(), [&](int j) { return state_.open(j) && least_[j] < top; });
    if (held_up) continue;
    conflict_ = state_.wait_reason(i);
    for (const int j : around) {
      if (state_.open(j)) explain(j, top);
    }
    end_explanation();
    return false;
  }
  return true;
}

/// An item that leaves too little room above itself for a whole section is not the lowest there. True if one
/// was found.
bool PackInference::make_low_ones_wait(std::span<const int> open) {
  bool found = false;
  for (const int i : open) {
    if (state_.waits(i)) continue;
    const Item& item = state_.item(i);
    const int64_t most = *std::max_element(load_.begin() + item.begin, load_.begin() + item.end);
    if (state_.support(i) + most <= state_.island().height) continue;
    ItemSet& reason = conflict_;
    reason.clear();
    reason.insert_common(state_.around_chains(i), state_.laid());
    state_.wait(i, reason);
    found = true;
  }
  return found;
}

bool PackInference::holds(std::span<const int> open) {
  begin_ = state_.item(open.front()).begin;
  end_ = 0;
  for (const int i : open) end_ = std::max(end_, state_.item(i).end);
  do {
    work_ += 4 * std::ssize(open);
    if (!find_least(open) || !sections_hold(open)) return false;
    if (tricks_.dominance && !waiting_ones_are_held_up(open)) return false;
  } while (make_low_ones_wait(open));
  return true;
}

}  // namespace spyre::solve
