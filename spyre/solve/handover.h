#pragma once

#include <cstdint>
#include <vector>

namespace spyre::solve {

/// A child that may take over a slot in its first section, and whose: one bit for each parent.
struct HandOver {
  int64_t room;
  uint64_t parents;
};

/// The most room that hand-overs can save in one section: a slot goes to one child at most, and a child takes
/// one.
///
///     parents P, Q; children a (3, of P), b (2, of P or Q), c (1, of Q)   ->   5: a takes P's slot, b takes
///     Q's
int64_t most_room_handed_over(std::vector<HandOver> children);

}  // namespace spyre::solve
