#include "spyre/solve/fluid.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace spyre::solve {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr double kTiny = 1e-12;

}  // namespace

void FluidRelaxation::build(const std::vector<Item>& items) {
  leaving_.resize(sections_ + 1);
  for (std::vector<int>& arcs : leaving_) arcs.clear();
  arcs_.clear();
  arc_of_item_.assign(items.size(), -1);
  const auto connect = [&](int from, int to, int64_t room, double cost) {
    const int index = std::ssize(arcs_);
    arcs_.push_back({to, index + 1, room, cost});
    arcs_.push_back({from, index, 0, -cost});
    leaving_[from].push_back(index);
    leaving_[to].push_back(index + 1);
    return index;
  };
  for (int t = 0; t < sections_; ++t) connect(t, t + 1, capacity_, 0);
  // Items that must stay in outbid any set of others for every byte they need.
  double must = 1;
  for (const Item& item : items) must += double(item.value) / double(item.size);
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (item.fate == Fate::kOut || item.begin >= item.end) continue;
    const double worth = double(item.value) / double(item.size) + (item.fate == Fate::kIn ? must : 0);
    arc_of_item_[i] = connect(item.begin, item.end, item.size, -worth);
  }
}

/// All arcs lead forward at the start, so one sweep finds the distances.
void FluidRelaxation::first_distances() {
  potential_.assign(sections_ + 1, kFar);
  potential_[0] = 0;
  for (int node = 0; node <= sections_; ++node) {
    for (const int a : leaving_[node]) {
      if (arcs_[a].room > 0)
        potential_[arcs_[a].to] = std::min(potential_[arcs_[a].to], potential_[node] + arcs_[a].cost);
    }
  }
}

/// Dijkstra on costs reduced by the potentials; afterwards the potentials are distances again.
bool FluidRelaxation::shortest_path() {
  distance_.assign(sections_ + 1, kFar);
  reached_by_.assign(sections_ + 1, -1);
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  distance_[0] = 0;
  queue.push({0, 0});
  while (!queue.empty()) {
    const auto [distance, node] = queue.top();
    queue.pop();
    if (distance > distance_[node]) continue;
    if (node == sections_) break;
    work_ += std::ssize(leaving_[node]);
    for (const int a : leaving_[node]) {
      const Arc& arc = arcs_[a];
      if (arc.room == 0) continue;
      const double step = std::max(0.0, arc.cost + potential_[node] - potential_[arc.to]);
      if (distance + step < distance_[arc.to] - kTiny) {
        distance_[arc.to] = distance + step;
        reached_by_[arc.to] = a;
        queue.push({distance + step, arc.to});
      }
    }
  }
  if (distance_[sections_] == kFar) return false;
  for (int node = 0; node <= sections_; ++node)
    potential_[node] += std::min(distance_[node], distance_[sections_]);
  return true;
}

int64_t FluidRelaxation::push(int64_t most) {
  for (int node = sections_; node != 0; node = arcs_[arcs_[reached_by_[node]].twin].to) {
    most = std::min(most, arcs_[reached_by_[node]].room);
  }
  for (int node = sections_; node != 0; node = arcs_[arcs_[reached_by_[node]].twin].to) {
    Arc& arc = arcs_[reached_by_[node]];
    arc.room -= most;
    arcs_[arc.twin].room += most;
  }
  return most;
}

void FluidRelaxation::price(const std::vector<Item>& items) {
  // The price of a section is what one more byte there would be worth, never below nothing.
  std::vector<double> paid(sections_ + 1, 0);
  for (int t = 0; t < sections_; ++t)
    paid[t + 1] = paid[t] + std::max(0.0, potential_[t] - potential_[t + 1]);
  bound_ = double(capacity_) * paid[sections_];
  kept_.assign(items.size(), 0);
  surplus_.assign(items.size(), 0);
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (item.fate == Fate::kOut) continue;
    surplus_[i] = double(item.value) - double(item.size) * (paid[item.end] - paid[item.begin]);
    bound_ += item.fate == Fate::kIn ? surplus_[i] : std::max(0.0, surplus_[i]);
    const bool takes_room = arc_of_item_[i] >= 0;
    kept_[i] = takes_room ? double(arcs_[arcs_[arc_of_item_[i]].twin].room) / double(item.size) : 1;
  }
}

void FluidRelaxation::solve(const std::vector<Item>& items) {
  work_ = 0;
  build(items);
  first_distances();
  for (int64_t left = capacity_; left > 0;) {
    // An idle path is worth nothing, and so is every later one.
    if (!shortest_path() || potential_[sections_] - potential_[0] >= -kTiny) break;
    left -= push(left);
  }
  price(items);
}

}  // namespace spyre::solve
