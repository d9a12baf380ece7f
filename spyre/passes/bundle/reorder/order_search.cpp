#include "spyre/passes/bundle/reorder/order_search.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace spyre {

OrderSearch::OrderSearch(const Dependences& dependences, const lx::GraphAccess& access,
                         lx::OrderEstimate& estimate, int64_t budget)
    : dependences_(dependences), estimate_(estimate), budget_(budget) {
  neighbours_.resize(access.ops.size());
  for (const std::vector<lx::BufferTouch>& touches : access.touches) {
    std::set<size_t> nodes;
    for (const lx::BufferTouch& touch : touches) nodes.insert(touch.node);
    if (nodes.size() > 1) sharing_.emplace_back(nodes.begin(), nodes.end());
    for (const lx::BufferTouch& a : touches) {
      for (const lx::BufferTouch& b : touches) {
        if (a.node != b.node) neighbours_[a.node].insert(b.node);
      }
    }
  }
}

std::optional<Order> OrderSearch::run() {
  Order program(neighbours_.size());
  std::iota(program.begin(), program.end(), size_t{0});
  lx::OrderLoss least = loss_of(program);
  std::optional<Order> best;
  for (Order start : {program, branch_by_branch(), freeing_most()}) {
    const lx::OrderLoss loss = climb(start);
    if (loss < least) least = loss, best = std::move(start);
  }
  return best;
}

lx::OrderLoss OrderSearch::loss_of(const Order& order) {
  ++evaluated_;
  return estimate_.loss_of(order);
}

// The nodes as listed, each once, and before each of them what it waits for.
Order OrderSearch::as_soon_as_possible(const Order& listed) const {
  Order order, path;
  std::vector<size_t> looked_at(neighbours_.size(), 0);  // of what a node waits for
  std::vector<char> met(neighbours_.size(), 0);
  const auto begin = [&](size_t node) {
    if (!met[node]) path.push_back(node);
    met[node] = 1;
  };
  for (const size_t node : listed) {
    begin(node);
    while (!path.empty()) {
      const size_t last = path.back();
      const std::vector<size_t>& before = dependences_.before[last];
      if (looked_at[last] < before.size()) {
        begin(before[looked_at[last]++]);
      } else {
        order.push_back(last);
        path.pop_back();
      }
    }
  }
  return order;
}

// The branch of one end to the root, then the next.
Order OrderSearch::branch_by_branch() const {
  Order ends;
  for (size_t node = 0; node < neighbours_.size(); ++node) {
    if (dependences_.after[node].empty()) ends.push_back(node);
  }
  return as_soon_as_possible(ends);
}

// Of the nodes that may run, the one after which least is at stake.
Order OrderSearch::freeing_most() {
  Order order;
  std::vector<size_t> waits(neighbours_.size());
  std::set<size_t> ready;
  for (size_t node = 0; node < waits.size(); ++node) {
    waits[node] = dependences_.before[node].size();
    if (waits[node] == 0) ready.insert(node);
  }
  while (!ready.empty()) {
    size_t next = *ready.begin();
    lx::OrderLoss least;
    for (const size_t node : ready) {
      if (ready.size() == 1 || spent()) break;
      const lx::OrderLoss loss = loss_of(completed(order, node));
      if (node == *ready.begin() || loss < least) least = loss, next = node;
    }
    ready.erase(next);
    order.push_back(next);
    for (const size_t later : dependences_.after[next]) {
      if (--waits[later] == 0) ready.insert(later);
    }
  }
  return order;
}

// The beginning of an order, a node, and the rest as the program has it.
Order OrderSearch::completed(Order order, size_t node) const {
  order.push_back(node);
  std::vector<char> taken(neighbours_.size(), 0);
  for (const size_t n : order) taken[n] = 1;
  for (size_t n = 0; n < taken.size(); ++n) {
    if (!taken[n]) order.push_back(n);
  }
  return order;
}

// Moves single nodes, and gathers what shares a buffer, while that makes the order better.
lx::OrderLoss OrderSearch::climb(Order& order) {
  lx::OrderLoss least = loss_of(order);
  bool improved = true;
  while (improved && least.overload > 0 && !spent()) {
    improved = false;
    for (size_t node = 0; node < order.size() && !spent(); ++node)
      improved = move(node, order, least) || improved;
    for (const std::vector<size_t>& nodes : sharing_) {
      if (spent()) break;
      Order together = gathered(order, nodes);
      const lx::OrderLoss loss = loss_of(together);
      if (loss >= least) continue;
      least = loss;
      order = std::move(together);
      improved = true;
    }
  }
  return least;
}

// The order in which, once the first of these nodes has run, the others follow as soon as they may.
Order OrderSearch::gathered(const Order& order, const std::vector<size_t>& nodes) const {
  std::vector<char> wanted(order.size(), 0);
  for (const size_t node : nodes) wanted[node] = 1;
  const auto first = std::find_if(order.begin(), order.end(), [&](size_t node) { return wanted[node]; });
  Order listed(order.begin(), first);
  std::copy_if(first, order.end(), std::back_inserter(listed), [&](size_t node) { return wanted[node]; });
  listed.insert(listed.end(), first, order.end());
  return as_soon_as_possible(listed);
}

// The best place of one node among the earliest and the latest it may take, and beside what it shares
// buffers with.
bool OrderSearch::move(size_t node, Order& order, lx::OrderLoss& least) {
  Order without = order;
  std::erase(without, node);
  std::vector<size_t> position(order.size());
  for (size_t i = 0; i < without.size(); ++i) position[without[i]] = i;
  size_t first = 0, last = without.size();
  for (const size_t n : dependences_.before[node]) first = std::max(first, position[n] + 1);
  for (const size_t n : dependences_.after[node]) last = std::min(last, position[n]);
  std::set<size_t> places = {first, last};
  for (const size_t n : neighbours_[node]) {
    for (const size_t place : {position[n], position[n] + 1}) {
      if (place >= first && place <= last) places.insert(place);
    }
  }
  bool improved = false;
  for (const size_t place : places) {
    if (spent()) break;
    Order moved = without;
    moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(place), node);
    const lx::OrderLoss loss = loss_of(moved);
    if (loss >= least) continue;
    least = loss;
    order = std::move(moved);
    improved = true;
  }
  return improved;
}

}  // namespace spyre
