#pragma once

#include <cstdint>
#include <vector>

#include "spyre/solve/fluid.h"
#include "spyre/solve/handover.h"
#include "spyre/solve/sections.h"

namespace spyre::solve {

/// The set of greatest value that every section has room for: buffers stay whole, but may lie in pieces. It
/// holds no alternatives, but perhaps a part of a group.
///
/// A tighter bound than the fluid one, found by walking the sections with a table of all subsets of the open
/// items live there:
///
///     section 3: {A, B, C} live      value of {}, {A}, {B}, {A, B} ... , the best over everything before
///     section 4: A ends, D begins    forget A, then each set with and without D, those that fit
///
/// The table doubles with every item that is live at once, so this serves where few are.
class WholeRelaxation {
 public:
  using Fate = FluidRelaxation::Fate;

  explicit WholeRelaxation(const Island& island) : island_(island) {}

  /// False when the tables would pass `most_states`, or when the kept items alone do not fit.
  bool solve(const std::vector<Fate>& fate, int64_t most_states);

  int64_t bound() const { return bound_; }
  bool kept(int item) const { return kept_[item]; }
  /// Units of work spent by the last solve.
  int64_t work() const { return work_; }

 private:
  struct Section {
    std::vector<int> live;         ///< open items; those that were live before come first
    std::vector<int> stays;        ///< for each live item of the section before: its place here, or -1
    std::vector<uint32_t> origin;  ///< by set of staying items: the best set before
  };

  /// A child in its first section, and a parent it may take over from. `place` among the live items, or -1
  /// for one that is kept for sure.
  struct Guest {
    int place;
    HandOver hand_over;
  };
  struct Host {
    int item, place;
  };

  bool lay_out(const std::vector<Fate>& fate, int64_t most_states);
  std::vector<int64_t> advance(Section& section, const std::vector<int64_t>& before) const;
  void drop_overfull(int t, const std::vector<Fate>& fate, std::vector<int64_t>& value) const;
  int64_t most_handed_over(uint32_t set, const std::vector<Guest>& guests,
                           const std::vector<Host>& hosts) const;
  void trace_back(uint32_t best);

  const Island& island_;
  std::vector<Section> sections_;
  std::vector<bool> kept_;
  int64_t bound_ = 0;
  int64_t work_ = 0;
};

}  // namespace spyre::solve
