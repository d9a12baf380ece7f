#pragma once

#include <cstdint>
#include <vector>

#include "spyre/solve/item_set.h"
#include "spyre/solve/sections.h"

namespace spyre::solve {

/// What is known at one node of the packer's search: which items are laid and where, and what that means for
/// the *open* ones, those not laid yet.
///
///     offset                      laid: A, B. Supports: C 3, D 1, E 0.
///      3 |    :  C  :
///      2 |  +---+   :             An open item's *support* is the lowest offset above everything
///      1 |  | B |---+ D :         laid in its way. Items are only ever laid on their support, so an
///      0 +--+---+-A-+---+--E--    item that is laid goes below all open ones it meets.
///
/// An item *waits* when it is known that some open item it meets goes below it. The fact holds until one of
/// those is laid. Each comes with its reason: the laid items without which it might be false.
///
/// Changes are recorded on a trail and undone in reverse.
class PackState {
 public:
  explicit PackState(const Island& island);

  /// Which items are to be packed.
  void choose(const std::vector<int>& chosen);
  /// All of them open, nothing waits.
  void restart();

  const Island& island() const { return island_; }
  const Item& item(int i) const { return island_.items[i]; }
  bool open(int i) const { return open_[i]; }
  int64_t offset(int i) const { return offset_[i]; }
  int64_t support(int i) const { return support_[i]; }
  /// The laid item that a support above the start rests on.
  int supporter(int i) const { return supporter_[i]; }
  bool waits(int i) const { return reason_[i] >= 0; }
  const ItemSet& wait_reason(int i) const { return reasons_[reason_[i]]; }
  const std::vector<int>& neighbours(int i) const { return neighbours_[i]; }
  const ItemSet& neighbour_set(int i) const { return neighbour_set_[i]; }
  const ItemSet& laid() const { return laid_; }
  /// The chosen items that a chain starting with i could hold: i, its children, their children; and whom
  /// these meet.
  const std::vector<int>& descendants(int i) const { return descendants_[i]; }
  const ItemSet& around_chains(int i) const { return around_chains_[i]; }
  /// The items whose chains may meet i.
  const ItemSet& heads_around(int i) const { return heads_around_[i]; }
  /// No open item may share a base with it.
  bool single(int i) const;
  /// A parent is open, so the child may need no room in its first section.
  bool may_take_over(int child) const;
  /// Interchangeable chosen items.
  const std::vector<int>& twins(int i) const { return twins_[i]; }

  size_t mark() const { return trail_.size(); }
  void lay(const std::vector<int>& chain, int64_t base);
  /// Item i was not waiting yet.
  void wait(int i, const ItemSet& reason);
  void undo_to(size_t mark);

 private:
  struct Change {
    int item;
    bool laid;  ///< the change is that it was laid; else the old values follow
    int64_t support;
    int supporter, reason;
  };

  void lay_one(int i, int64_t base);
  void meet(int i, int laid);
  void stop_waiting(int i);

  const Island& island_;
  std::vector<std::vector<int>> neighbours_;  ///< items that share a section
  std::vector<ItemSet> neighbour_set_, around_chains_, heads_around_;
  std::vector<int> chosen_;
  std::vector<char> open_;
  std::vector<std::vector<int>> twins_, ancestors_, descendants_;
  std::vector<int64_t> offset_, support_;
  std::vector<int> supporter_;
  std::vector<int> reason_;       ///< index of the reason to wait, or -1
  std::vector<ItemSet> reasons_;  ///< a stack; what lies above the count is kept for its memory
  int reason_count_ = 0;
  ItemSet laid_;
  std::vector<Change> trail_;
};

}  // namespace spyre::solve
