#include "spyre/passes/reorder_nodes.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "spyre/base/json.h"
#include "spyre/passes/reorder/dependences.h"
#include "spyre/passes/reorder/order_estimate.h"
#include "spyre/passes/scratchpad/placement_question.h"
#include "spyre/passes/scratchpad/plan_cost.h"

namespace spyre {
namespace {

using Order = std::vector<size_t>;

class OrderSearch {
 public:
  OrderSearch(const Dependences& dependences, const GraphAccess& access, OrderEstimate& estimate,
              int64_t budget)
      : dependences_(dependences), estimate_(estimate), budget_(budget) {
    neighbours_.resize(access.ops.size());
    for (const std::vector<BufferTouch>& touches : access.touches) {
      std::set<size_t> nodes;
      for (const BufferTouch& touch : touches) nodes.insert(touch.node);
      if (nodes.size() > 1) sharing_.emplace_back(nodes.begin(), nodes.end());
      for (const BufferTouch& a : touches) {
        for (const BufferTouch& b : touches) {
          if (a.node != b.node) neighbours_[a.node].insert(b.node);
        }
      }
    }
  }

  /// Orders worth planning, the most promising first; none that is not expected to beat the program's.
  /// The best order found; nothing when none is better than the order of the program.
  std::optional<Order> run() {
    Order program(neighbours_.size());
    std::iota(program.begin(), program.end(), size_t{0});
    OrderLoss least = loss_of(program);
    std::optional<Order> best;
    for (Order start : {program, branch_by_branch(), freeing_most()}) {
      const OrderLoss loss = climb(start);
      if (loss < least) least = loss, best = std::move(start);
    }
    return best;
  }

  int64_t evaluated() const { return evaluated_; }

 private:
  OrderLoss loss_of(const Order& order) {
    ++evaluated_;
    return estimate_.loss_of(order);
  }

  bool spent() const { return estimate_.work() >= budget_; }

  // The nodes as listed, each once, and before each of them what it waits for.
  Order as_soon_as_possible(const Order& listed) const {
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
  Order branch_by_branch() const {
    Order ends;
    for (size_t node = 0; node < neighbours_.size(); ++node) {
      if (dependences_.after[node].empty()) ends.push_back(node);
    }
    return as_soon_as_possible(ends);
  }

  // Of the nodes that may run, the one after which least is at stake.
  Order freeing_most() {
    Order order;
    std::vector<size_t> waits(neighbours_.size());
    std::set<size_t> ready;
    for (size_t node = 0; node < waits.size(); ++node) {
      waits[node] = dependences_.before[node].size();
      if (waits[node] == 0) ready.insert(node);
    }
    while (!ready.empty()) {
      size_t next = *ready.begin();
      OrderLoss least;
      for (const size_t node : ready) {
        if (ready.size() == 1 || spent()) break;
        const OrderLoss loss = loss_of(completed(order, node));
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
  Order completed(Order order, size_t node) const {
    order.push_back(node);
    std::vector<char> taken(neighbours_.size(), 0);
    for (const size_t n : order) taken[n] = 1;
    for (size_t n = 0; n < taken.size(); ++n) {
      if (!taken[n]) order.push_back(n);
    }
    return order;
  }

  // Moves single nodes, and gathers what shares a buffer, while that makes the order better.
  OrderLoss climb(Order& order) {
    OrderLoss least = loss_of(order);
    bool improved = true;
    while (improved && least.overload > 0 && !spent()) {
      improved = false;
      for (size_t node = 0; node < order.size() && !spent(); ++node)
        improved = move(node, order, least) || improved;
      for (const std::vector<size_t>& nodes : sharing_) {
        if (spent()) break;
        Order together = gathered(order, nodes);
        const OrderLoss loss = loss_of(together);
        if (loss >= least) continue;
        least = loss;
        order = std::move(together);
        improved = true;
      }
    }
    return least;
  }

  // The order in which, once the first of these nodes has run, the others follow as soon as they may.
  Order gathered(const Order& order, const std::vector<size_t>& nodes) const {
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
  bool move(size_t node, Order& order, OrderLoss& least) {
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
      const OrderLoss loss = loss_of(moved);
      if (loss >= least) continue;
      least = loss;
      order = std::move(moved);
      improved = true;
    }
    return improved;
  }

  const Dependences& dependences_;
  OrderEstimate& estimate_;
  const int64_t budget_;
  std::vector<std::set<size_t>> neighbours_;
  std::vector<std::vector<size_t>> sharing_;  // by buffer that several nodes touch
  int64_t evaluated_ = 0;
};

Graph in_order(const Graph& graph, const Order& order) {
  Graph ordered = graph;
  for (size_t i = 0; i < order.size(); ++i) ordered.nodes[i] = graph.nodes[order[i]];
  return ordered;
}

struct Planned {
  Bytes traffic;
  bool all_found_room = false;
};

Result<Planned> planned(Graph graph, const ScratchpadOptions& options) {
  SPYRE_ASSIGN_OR_RETURN(const ScratchpadPlan plan, plan_scratchpad(graph, options));
  SPYRE_ASSIGN_OR_RETURN(const PlanCost cost, cost_of(graph));
  return Planned{cost.read + cost.written, plan.saved() == plan.at_stake()};
}

}  // namespace

Json ReorderReport::to_json() const {
  return {{"before", before.count()}, {"after", after.count()}, {"evaluated", evaluated}, {"moved", moved}};
}

Result<ReorderReport> reorder_nodes(Graph& graph, const ReorderOptions& options) {
  ScratchpadOptions quick = options.scratchpad;
  quick.quick = true;
  SPYRE_ASSIGN_OR_RETURN(Planned given, planned(graph, quick));
  ReorderReport report{.before = given.traffic, .after = given.traffic};
  if (given.all_found_room) return report;
  SPYRE_ASSIGN_OR_RETURN(const GraphAccess access, access_of(graph));
  const ResidencyJudge judge(graph, access, rules_of(options.scratchpad));
  std::vector<Holding> holdings;
  for (BufferId id = 0; id < std::ssize(graph.buffers); ++id)
    holdings.push_back({id, {}, judge.judge(id, judge.touches_of(id))});
  OrderEstimate estimate(graph, access, std::move(holdings), options.scratchpad.capacity,
                         options.scratchpad.in_place);
  const Dependences dependences = dependences_of(graph);
  OrderSearch search(dependences, access, estimate, options.budget);
  const std::optional<Order> order = search.run();
  report.evaluated = search.evaluated();
  if (!order) return report;
  SPYRE_CHECK(keeps(dependences, *order), "an order keeps what nodes wait for");
  Graph ordered = in_order(graph, *order);
  SPYRE_ASSIGN_OR_RETURN(Planned other, planned(ordered, quick));
  if (other.traffic >= given.traffic) return report;
  // Parts of lives may do in the order of the program what another order does for whole ones.
  SPYRE_ASSIGN_OR_RETURN(given, planned(graph, options.scratchpad));
  SPYRE_ASSIGN_OR_RETURN(other, planned(ordered, options.scratchpad));
  report.before = given.traffic;
  if (other.traffic >= given.traffic) return report;
  report.after = other.traffic;
  for (size_t i = 0; i < order->size(); ++i) report.moved += (*order)[i] != i;
  graph = std::move(ordered);
  return report;
}

}  // namespace spyre
