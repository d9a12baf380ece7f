#pragma once

#include <optional>
#include <vector>

#include "spyre/solve/problem.h"

namespace spyre::solve {

/// Addresses [begin, end).
struct Range {
  Bytes begin, end;

  constexpr Bytes length() const { return end - begin; }
  constexpr bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// What stays of [0, capacity) outside `busy`, from low to high. `busy` may overlap and need not be sorted.
std::vector<Range> free_gaps(Bytes capacity, std::vector<Range> busy);

/// A placement that grows buffer by buffer; starts with the fixed buffers in place.
///
/// Keeps the placed buffers in the order of their first step, so that asking for a short life looks only at
/// buffers that begin near it.
class Occupancy {
 public:
  explicit Occupancy(const Problem& problem);

  void place(BufferIndex id, Bytes offset);

  bool placed(BufferIndex id) const { return placement_.offset[id].has_value(); }
  Bytes offset(BufferIndex id) const { return *placement_.offset[id]; }
  const Placement& placement() const { return placement_; }

  /// The addresses taken at some step of a buffer's life, except by `besides`.
  std::vector<Range> busy(BufferIndex id, std::optional<BufferIndex> besides = std::nullopt) const;

  /// Whether an alternative of the buffer is placed.
  bool alternative_placed(BufferIndex id) const;

  /// The first declared parent whose slot the buffer can take over: placed, not handed over yet, with no
  /// other buffer in the way at any step of the child's life.
  std::optional<BufferIndex> reusable_parent(BufferIndex child) const;

 private:
  Range range(BufferIndex id) const { return {offset(id), offset(id) + problem_.buffers[id].size}; }

  const Problem& problem_;
  Placement placement_;
  std::vector<BufferIndex> by_begin_;  ///< placed buffers, sorted by first step
  Step longest_life_;
};

}  // namespace spyre::solve
