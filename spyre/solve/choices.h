#pragma once

#include <functional>
#include <vector>

#include "spyre/solve/problem.h"

namespace spyre::solve {

/// Items that depend on each other by more than room: *alternatives*, at most one of which is kept at any
/// time, and *all-or-nothing groups* (problem.h).
///
///     tensor 0   whole   |-----------|     value 9        9, not 9 + 3 + 4: whole shares a step with both
///                piece   |---|             value 3
///                piece           |---|     value 4
///     group 0   source  |-----|           value 5        4, not 5: one does not come without the other
///                copy        |---|         value -1
class Choices {
 public:
  /// Items are numbered in the order they are added. `tensor` and `group` are -1 for one that has none.
  void add(int64_t begin, int64_t end, int tensor, int group);

  bool empty() const { return units_.empty(); }

  /// What the items that pay, each taken by itself, are worth more than the best of them that go together.
  /// An item with value 0 is as good as absent.
  double excess(const std::vector<double>& value) const;

 private:
  struct Unit {  // a group, or one item of a tensor
    std::vector<int> items;
    int tensor = -1, group = -1;
    int64_t begin = 0, end = 0;  // of the items that have the tensor
  };

  std::vector<Unit> units_;
  int count_ = 0;
};

/// Takes the members of incomplete groups off the chip again.
void drop_incomplete(const Problem& problem, Placement& placement);

/// Whether a buffer may be placed at all: neither it nor another member of its group is ineligible or too large.
std::vector<bool> placeable(const Problem& problem);

/// For a solver that knows no groups: what it leaves incomplete is ineligible and the rest asked again, until
/// every group is whole or out.
Placement place_in_groups(const Problem& problem, const std::function<Placement(const Problem&)>& once);

}  // namespace spyre::solve
