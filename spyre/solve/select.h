#pragma once

#include <cstdint>
#include <vector>

#include "spyre/solve/deadline.h"
#include "spyre/solve/fluid.h"
#include "spyre/solve/pack.h"
#include "spyre/solve/sections.h"
#include "spyre/solve/whole.h"

namespace spyre::solve {

/// Which inferences the selection uses; like PackTricks, each can be switched off without changing an answer.
struct SelectTricks {
  PackTricks pack;
  bool whole = true;      ///< where few items are live at once, bound with whole items instead of fluid ones
  bool surplus = true;    ///< decide items whose other fate would cost more than the bound leaves
  bool learn = true;      ///< shrink a set that cannot be packed to a small core before remembering it
  bool dominance = true;  ///< keep a buffer only with every one that is smaller, shorter and worth as much
};

/// Chooses which items of an island to keep, exactly: the set of greatest value that can be packed.
///
/// Two questions are asked apart. *Which set?* Branch and bound on keep/spill, pruned with the fluid
/// relaxation and, where that is cheap, with whole items; both see loads but not addresses. *Does it pack?*
/// The packer answers for each set that would beat the best so far. A "no" is shrunk to a small core of items
/// that cannot be together, and no later set may hold a known core:
///
///     relaxation: keep {A, B, C, D}  ->  packer: impossible  ->  core {A, C, D}  ->  {A, B, C}, {B, C, D},
///     ...
///
/// Alternatives are cores from the start, and the members of a group share one fate.
///
/// The value of a placement depends only on the set, so the first packing found for a set is as good as any.
class Selection {
 public:
  Selection(const Island& island, SelectTricks tricks);

  /// A legal packing known before the search; `offsets` by item, -1 for spilled.
  void seed(std::vector<int64_t> offsets);

  /// Searches until the best is proven or the deadline passes; called again, it goes on with what it learned.
  void run(Deadline& deadline);

  const std::vector<int64_t>& offsets() const { return best_offsets_; }
  int64_t value() const { return best_value_; }
  bool proven() const { return proven_; }
  /// No placement of this island is worth more. Valid after `run`.
  int64_t upper_bound() const { return proven_ ? best_value_ : root_bound_; }

 private:
  using Fate = FluidRelaxation::Fate;
  /// Items that cannot be kept together.
  struct Core {
    std::vector<int> items;
    bool proven;  ///< else the packer gave up on them in this round
  };

  int64_t all_values() const;
  void pack_everything(Deadline& deadline);
  void explore(Deadline& deadline);
  bool propagate();
  bool propagate_loads();
  bool propagate_cores();
  bool decide(int item, Fate fate);
  bool may_take_over(int child) const;
  void relax(Deadline& deadline);
  bool relax_whole(Deadline& deadline);
  int64_t bound() const;
  bool fix_by_surplus();
  int64_t whole_values(double bound) const;
  int fractional_item() const;
  int rival_item() const;
  int undecided_of(const Core& core) const;
  int half_kept_group(const std::vector<bool>& kept) const;
  const Core* violated_core(const std::vector<bool>& kept) const;
  void try_set(const std::vector<int>& set, Deadline& deadline);
  std::vector<int> shrink(const std::vector<int>& set, Deadline& deadline);
  void branch(int item, Fate first, Deadline& deadline);
  void undo_to(size_t mark);

  const Island& island_;
  SelectTricks tricks_;
  Packer packer_;
  FluidRelaxation fluid_;
  Choices choices_;
  WholeRelaxation whole_;
  int64_t value_unit_ = 1;  ///< divides every value, so also every sum
  std::vector<Fate> fate_;
  std::vector<int> decided_;               ///< in order, for undoing
  std::vector<std::vector<int>> implied_;  ///< keeping i makes keeping these worthwhile
  std::vector<std::vector<int>> implying_;
  std::vector<std::vector<int>> group_of_;  ///< the other members
  std::vector<Core> cores_;
  std::vector<int64_t> best_offsets_;
  int64_t best_value_ = -1;
  int64_t root_bound_ = 0;
  bool proven_ = false;
  int64_t pack_nodes_ = 0;  ///< for one set, in this round
  int undecided_ = 0;       ///< sets of this round that the packer gave up on
  std::vector<int64_t> load_;
};

}  // namespace spyre::solve
