#pragma once

#include <optional>
#include <set>
#include <vector>

#include "spyre/lx/order_estimate.h"
#include "spyre/passes/bundle/reorder/dependences.h"

namespace spyre {

/// Nodes in the sequence they run.
using Order = std::vector<size_t>;

/// Looks for an order that leaves less outside LX, under the estimate of lx/order_estimate.h. Three orders to start from:
/// the program's, branch by branch, and whatever frees most first. Each is improved by moving single nodes and by
/// gathering the nodes that share a buffer, while that helps.
class OrderSearch {
 public:
  /// `budget`: units of the estimate's work.
  OrderSearch(const Dependences& dependences, const lx::GraphAccess& access, lx::OrderEstimate& estimate,
              int64_t budget);

  /// The best order found; nothing when none is better than the order of the program.
  std::optional<Order> run();

  /// Orders looked at.
  int64_t evaluated() const { return evaluated_; }

 private:
  lx::OrderLoss loss_of(const Order& order);
  bool spent() const { return estimate_.work() >= budget_; }
  Order as_soon_as_possible(const Order& listed) const;
  Order branch_by_branch() const;
  Order freeing_most();
  Order completed(Order order, size_t node) const;
  lx::OrderLoss climb(Order& order);
  Order gathered(const Order& order, const std::vector<size_t>& nodes) const;
  bool move(size_t node, Order& order, lx::OrderLoss& least);

  const Dependences& dependences_;
  lx::OrderEstimate& estimate_;
  const int64_t budget_;
  std::vector<std::set<size_t>> neighbours_;
  std::vector<std::vector<size_t>> sharing_;  // by buffer that several nodes touch
  int64_t evaluated_ = 0;
};

}  // namespace spyre
