#pragma once

#include <vector>

#include "spyre/lx/planner.h"
#include "spyre/lx/residency.h"

namespace spyre::lx {

/// What an order of nodes would leave outside LX, quickly: every buffer that may live there for its whole
/// life is there; where that is too much, the one that saves least for its size goes. Loads only, no
/// addresses, no live-range segments: a guide for a search, not a plan.
struct OrderLoss {
  int64_t off_chip = 0;  ///< bytes that residency would have saved
  int64_t overload = 0;  ///< bytes beyond the capacity, summed over all steps, before anything goes

  friend auto operator<=>(const OrderLoss&, const OrderLoss&) = default;
};

class OrderEstimate {
 public:
  OrderEstimate(const Graph& graph, const GraphAccess& access, const PlannerOptions& options);

  /// `order`: nodes in the sequence they run.
  OrderLoss loss_of(const std::vector<size_t>& order);

  /// Units of work of all calls so far.
  int64_t work() const { return work_; }

 private:
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
    std::vector<size_t> parents;     // items whose slot it may take over if they end where it begins
    std::vector<size_t> successors;  // the other way around
  };
  struct Piece {
    size_t item;
    int64_t begin, end, size;
  };

  void lay_out(const std::vector<size_t>& order);
  /// Puts everything into LX.
  void load_all();
  void drop(size_t item);
  /// Whether the slot of a parent is there when the item begins.
  bool takes_over(size_t item) const;
  /// The first step from here on at which what is kept is too much; the end if there is none.
  size_t overload_from(size_t step);

  std::vector<Item> items_;
  int64_t capacity_;
  std::vector<size_t> position_;
  std::vector<Piece> pieces_;   // of the order at hand; the source of an item before its copies
  std::vector<size_t> source_;  // by item: its first piece
  std::vector<char> kept_;      // by item
  std::vector<int64_t> load_;   // by step
  int64_t work_ = 0;
};

}  // namespace spyre::lx
