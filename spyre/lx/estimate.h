#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "spyre/lx/core_view.h"

/// What stays in LX by size alone: the estimate under which divisions (trial_plan.h) and orders (order_estimate.h) are
/// searched.
///
///     load   ^        ......                  everything is put into LX for its whole live range; where that is more
///     room --|-------/ D    \-------          than there is room for, what gains least for its size leaves
///            |  ____/________\____
///            | |  A   |  B (on A) |           a result that takes over a slot begins one step later: the step they share
///            +---------------------> step     is counted once
///
/// Loads only: no addresses, so that what fits here may find no place, and no live-range segments, so that a solver may
/// do better. A guide for a search, which then plans what it found.
namespace spyre::lx {

/// Bytes of LX from one step to another.
struct Piece {
  int64_t begin, end, size;
};

/// What one item would hold, and what that is worth.
struct Claim {
  std::vector<Piece> pieces;       ///< the buffer first, then its copies; none: it must not be in LX
  const CoreView* view = nullptr;  ///< interned, of the buffer
  double gain = 0;                 ///< of being in LX, in any unit
};

/// The steps in which something has changed.
struct Window {
  int64_t begin, end;

  void include(const Claim& claim);
  bool meets(const Claim& claim) const;
};

class Estimate {
 public:
  /// `parents` by item: those whose slot it may take over if they have the same view and end where it begins.
  Estimate(size_t steps, std::vector<std::vector<size_t>> parents);

  /// Nothing is in LX. `room`: bytes of one core's LX to count on.
  void start(int64_t room);
  /// All of the items are in LX: the same as `start`, `set` and `settle` of each, in one sweep. The caller keeps the claims.
  void start(int64_t room, const std::vector<Claim>& claims);
  void start(int64_t room, std::vector<Claim>&& claims) = delete;

  /// Puts an item into LX or leaves it outside. The claim is kept by the caller.
  void set(size_t item, const Claim* claim, bool in_lx);
  /// Finds out anew whether an item, and those that may follow it, take over a slot. Needed once after `set`.
  void settle(size_t item);
  /// Takes items off LX until every step of the window has room; those, in the order they left.
  std::vector<size_t> make_room(Window window);

  bool in_lx(size_t item) const { return stays_[item].in_lx; }
  const Claim* claim(size_t item) const { return stays_[item].claim; }
  /// Steps there are: a window over all of them.
  Window all() const { return {0, static_cast<int64_t>(load_.size())}; }
  /// Bytes beyond the room, summed over all steps.
  int64_t overload() const;
  /// Units of work so far: a piece or a step each.
  int64_t work() const { return work_; }

  /// From here on changes are noted, and `undo` takes them back.
  void mark() { undone_.clear(); }
  void undo();

 private:
  struct Stay {
    const Claim* claim = nullptr;
    bool in_lx = false;
    int64_t begin = 0;  // of the first piece: a step later where it takes over a slot
  };

  bool takes_over(size_t item) const;
  int64_t occupy(const Stay& stay, int sign);
  void settle_alone(size_t item);
  size_t least_worth(int64_t step) const;

  std::vector<std::vector<size_t>> parents_, children_;  // by item
  std::vector<Stay> stays_;                              // by item
  std::vector<int64_t> load_;                            // by step: bytes of LX in use
  int64_t room_ = 0;
  int64_t pieces_ = 0;  // of all claims of a sweep
  int64_t work_ = 0;
  std::vector<std::pair<size_t, Stay>> undone_;  // what an item was before each change since the mark
};

}  // namespace spyre::lx
