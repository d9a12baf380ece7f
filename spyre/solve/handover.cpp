#include "spyre/solve/handover.h"

#include <algorithm>
#include <array>
#include <bit>

namespace spyre::solve {
namespace {

/// A matching that grows child by child, along paths that move earlier children to other slots.
class Matching {
 public:
  explicit Matching(const std::vector<HandOver>& children) : children_(children) { taken_by_.fill(-1); }

  bool add(int child) {
    tried_ = 0;
    return find_slot(child);
  }

 private:
  bool find_slot(int child) {
    for (uint64_t left = children_[child].parents & ~tried_; left != 0;
         left = (left & (left - 1)) & ~tried_) {
      const int parent = std::countr_zero(left);
      tried_ |= uint64_t{1} << parent;
      if (taken_by_[parent] < 0 || find_slot(taken_by_[parent])) {
        taken_by_[parent] = child;
        return true;
      }
    }
    return false;
  }

  const std::vector<HandOver>& children_;
  std::array<int, 64> taken_by_;
  uint64_t tried_ = 0;
};

}  // namespace

int64_t most_room_handed_over(std::vector<HandOver> children) {
  // Sets of children that can all be served form a matroid, so taking the largest first is best.
  std::stable_sort(children.begin(), children.end(),
                   [](const HandOver& a, const HandOver& b) { return a.room > b.room; });
  Matching matching(children);
  int64_t room = 0;
  for (int child = 0; child < std::ssize(children); ++child)
    room += matching.add(child) ? children[child].room : 0;
  return room;
}

}  // namespace spyre::solve
