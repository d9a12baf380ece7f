#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "spyre/solve/item_set.h"
#include "spyre/solve/pack_state.h"

namespace spyre::solve {

/// Which inferences the packer uses. Switching one off costs time, never an answer; tests prove that.
struct PackTricks {
  bool decompose = true;  ///< items that no longer share a section with the others are packed on their own
  bool lift = true;       ///< an item that waits goes above the lowest top that can come under it
  bool dominance = true;  ///< an item that waits could otherwise drop: something must be in its way
  bool memory = true;     ///< a part that could not be packed is recognised when it comes back
  bool jump = true;  ///< a failure that a laid item has no part in is not repaired by laying it elsewhere
};

/// Looks ahead from a state: can the open items still be packed above what is laid?
///
/// Each open item gets a *least* offset: its support or, when it waits, the lowest top that can come under
/// it. In every section the items must then fit one above the other:
///
///     least 0, 0, 5; sizes 2, 1, 4; height 8     0..2, 2..3, (idle) 5..9: does not fit
///
/// When the answer is no, `conflict` names laid items that suffice: as long as they lie where they do, it
/// stays no.
class PackInference {
 public:
  PackInference(PackState& state, const PackTricks& tricks);

  /// False: the items, all open and connected, cannot be packed. Makes items wait that cannot be the lowest.
  bool holds(std::span<const int> open);

  const ItemSet& conflict() const { return conflict_; }
  ItemSet& conflict() { return conflict_; }
  /// How often a section was too small; grows over all tries.
  const std::vector<int64_t>& blame() const { return blame_; }
  /// Units of work since the last call.
  int64_t take_work();

 private:
  /// While least offsets are found: an item's top is settled, or a child could lie at its parent's base.
  struct Event {
    int64_t at;
    int item;
    bool is_top;
    friend auto operator<=>(const Event&, const Event&) = default;
  };

  bool find_least(std::span<const int> open);
  void add_crowded_children(std::span<const int> open);
  bool sections_hold(std::span<const int> open);
  bool waiting_ones_are_held_up(std::span<const int> open);
  bool make_low_ones_wait(std::span<const int> open);
  void blame_section(int t);
  void explain(int item, int64_t at_least);
  void end_explanation();
  int first_section(int item) const { return state_.item(item).begin + (state_.may_take_over(item) ? 1 : 0); }

  PackState& state_;
  const PackTricks& tricks_;
  ItemSet conflict_;
  std::vector<int64_t> blame_;
  int64_t work_ = 0;
  // Scratch of one call.
  int begin_ = 0, end_ = 0;  ///< the sections of its items
  std::vector<int64_t> least_;
  ItemSet unlifted_;
  std::vector<Event> events_;  ///< a heap, earliest first
  /// Open items by least offset. Behind the items come the sections: children there that no parent can make
  /// room for.
  std::vector<std::pair<int64_t, int>> by_least_;
  std::vector<int64_t> crowded_;             ///< by section: the room of those children
  std::vector<std::pair<int, int>> guests_;  ///< (section, child) of children that may take over a slot
  std::vector<int64_t> reach_, load_;        ///< by section: where its items end at least, and their sum
  std::vector<int64_t> explained_;           ///< by item: up to which offset its least is explained
  std::vector<int> touched_;                 ///< items with `explained_` set
};

}  // namespace spyre::solve
