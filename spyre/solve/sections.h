#pragma once

#include <cstdint>
#include <vector>

#include "spyre/solve/choices.h"
#include "spyre/solve/problem.h"

namespace spyre::solve {

/// A buffer as the exact solver sees it: plain integers, and time cut into *sections*, the intervals between
/// two neighbouring begins or ends, inside which nothing changes.
struct Item {
  BufferIndex id;  ///< in the problem it came from
  int begin, end;  ///< sections, half-open
  int64_t life;    ///< steps
  int64_t size, align, value;
  int64_t room;               ///< size rounded up to the island's unit: nobody else can use the rest
  int64_t fixed = -1;         ///< offset, or -1
  int tensor = -1;            ///< alternatives share one and a section
  int group = -1;             ///< kept together or not at all
  std::vector<int> parents;   ///< items whose slot it may take over
  std::vector<int> children;  ///< items that may take over its slot
};

/// A part of a problem that shares no step with the rest.
///
/// An in-place pair shares exactly one section: the child's first, the parent's last.
struct Island {
  int64_t capacity = 0;
  /// Where the highest room can end. Offsets are multiples of the unit, the greatest common divisor of all
  /// alignments, so with whole-unit sizes a capacity of 20.5 units is worth 20.
  int64_t height = 0;
  int sections = 0;
  std::vector<Item> items;
};

/// Whether at most one of two items is kept.
inline bool are_alternatives(const Item& a, const Item& b) {
  const bool together = a.group >= 0 && a.group == b.group;
  return a.tensor >= 0 && a.tensor == b.tensor && !together && a.begin < b.end && b.begin < a.end;
}

/// What the items of an island have to do with each other besides room.
Choices choices_of(const Island& island);

/// The buffers `chosen` (none ineligible) as islands, in the order of time. Chosen buffers that could never fit
/// are left out. Members of a group share steps, so that a group lies in one island.
std::vector<Island> cut_islands(const Problem& problem, const std::vector<BufferIndex>& chosen);

}  // namespace spyre::solve
