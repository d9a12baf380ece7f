#pragma once

#include <vector>

#include "spyre/lx/estimate.h"
#include "spyre/lx/residency.h"

namespace spyre::lx {

/// What an order of nodes would leave outside LX, under the estimate of estimate.h.
struct OrderLoss {
  int64_t off_chip = 0;  ///< bytes that residency would have saved
  int64_t overload = 0;  ///< bytes beyond the capacity, summed over all steps, before anything goes

  friend auto operator<=>(const OrderLoss&, const OrderLoss&) = default;
};

class OrderEstimate {
 public:
  OrderEstimate(const Analysis& analysis, Bytes capacity);

  /// `order`: nodes in the sequence they run.
  OrderLoss loss_of(const std::vector<size_t>& order);

  /// Units of work of all calls so far.
  int64_t work() const { return estimate_.work(); }

 private:
  // A buffer that may live in LX, by the nodes that touch it there; in which steps follows from an order.
  struct Copy {
    std::vector<size_t> readers;
    int64_t size;
  };
  struct Item {
    std::vector<size_t> nodes;  // that touch it directly
    std::vector<size_t> writers;
    std::vector<Copy> copies;
    int64_t size, saves;
    bool clone, copied_out;
  };

  static std::vector<Holding> holdings_of(const Analysis& analysis);
  OrderEstimate(const Analysis& analysis, Bytes capacity, const std::vector<Holding>& holdings);
  static Item item_of(const Residency& residency);
  void lay_out(const std::vector<size_t>& order);
  void lay_out(const Item& item, std::vector<Piece>& pieces) const;
  int64_t step_of(size_t node) const { return 2 * static_cast<int64_t>(position_[node]) + 1; }

  const int64_t capacity_;
  std::vector<Item> items_;
  std::vector<size_t> position_;  // by node, in the order at hand
  std::vector<Claim> claims_;     // by item, in the order at hand
  Estimate estimate_;
};

}  // namespace spyre::lx
