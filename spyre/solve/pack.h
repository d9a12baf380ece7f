#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "spyre/solve/deadline.h"
#include "spyre/solve/sections.h"

namespace spyre::solve {

/// Which inferences the packer uses. Switching one off costs time, never an answer; tests prove that.
struct PackTricks {
  bool decompose = true;  ///< items that no longer share a section with the others are packed on their own
  bool ordered = true;    ///< items are laid in ascending (offset, rank): one sequence per packing, not n!
  bool dominance = true;  ///< never lay an item above a hole that another one fills (needs `ordered`)
  bool memory = true;     ///< a part that could not be packed is recognised when it comes back
  bool floors = true;  ///< items skipped at this height must find a higher support; sections must hold them
};

enum class PackVerdict {
  kPacked,      ///< offsets found
  kImpossible,  ///< proven: there are none
  kGaveUp,      ///< the deadline passed first
};

/// Decides whether all chosen items of an island fit together: a complete search.
///
/// Vocabulary. The *support* of an open (not yet laid) item is the lowest offset at which nothing laid so far
/// is in its way: it rests on the highest top in its sections. Items are only ever laid on their support:
///
///     offset                      laid: A, B. Supports: C 3, D 1, E 0.
///      3 |    :  C  :             Of all packings one has the smallest sum of offsets. In it every item
///      rests on 2 |  +---+   :             its support, and no item could drop into a hole. So it is enough
///      to try those 1 |  | B |---+ D :         packings, laid in ascending offset: after C at 3, E can no
///      longer go to 0. 0 +--+---+-A-+---+--E--
///
/// An in-place pair may be laid as one *chain* on a common base, the greater of the two supports; a child is
/// otherwise laid like any other item. Chains grow along declared pairs.
class Packer {
 public:
  explicit Packer(const Island& island, PackTricks tricks = {});

  /// Tries to pack the chosen items, for at most `node_limit` nodes and the work left.
  PackVerdict pack(const std::vector<int>& chosen, int64_t node_limit, Deadline& deadline);

  /// After kPacked: the offset of each chosen item, by item index.
  int64_t offset(int item) const { return offset_[item]; }

 private:
  struct Move {
    int64_t base;
    int rank;
    int head;
    std::vector<int> followers;  ///< the rest of a chain
  };
  /// What the search below a node depends on, as 128 bits of hash.
  struct State {
    uint64_t a, b;
    friend bool operator==(const State&, const State&) = default;
  };
  struct StateHash {
    size_t operator()(const State& state) const { return state.a; }
  };
  using Items = std::span<const int>;  ///< sorted by first section
  struct Span {
    int begin, end;  ///< sections
  };
  struct Frontier {
    int64_t base = 0;
    int rank = -1;
  };

  void rank_items(const std::vector<int>& chosen, int order);
  PackVerdict try_order(const std::vector<int>& chosen, int order, int64_t nodes, int64_t& node_limit,
                        Deadline& deadline);
  PackVerdict pack_in_order(const std::vector<int>& chosen, Deadline& deadline);
  PackVerdict search(Items open, Frontier last, Deadline& deadline);
  PackVerdict search_parts(Items open, std::vector<Items> parts, Frontier last, Deadline& deadline);
  PackVerdict search_moves(Items open, Frontier last, Deadline& deadline);
  std::vector<Items> cut_parts(Items open) const;
  State state_of(Items open, Frontier last) const;
  bool sections_hold(Items open, Frontier last);
  bool frontier_leaves_room(Span span, Frontier last);
  bool lift_waiting(Items open, Span span, Frontier last, bool& raised);
  bool loads_fit(Items open, Span span);
  bool waits(int item, Frontier last) const;
  bool may_take_over(int child) const;
  std::vector<Move> moves(Items open, Frontier last) const;
  void extend_chain(Move move, std::vector<Move>& out) const;
  void lay(const Move& move);
  void lay_one(int item, int64_t base);
  void raise_neighbours(int item);
  void take_back(const Move& move);
  void restore_supports();
  void reopen(int item);
  void change_open_load(int item, int64_t bytes);

  const Island& island_;
  PackTricks tricks_;
  std::vector<std::vector<int>> neighbours_;  ///< items that share a section
  std::vector<int64_t> offset_;               ///< -1: open
  std::vector<int64_t> support_;
  std::vector<bool> taking_part_;
  std::vector<int> rank_;
  std::vector<int64_t> open_load_;              ///< room that open items certainly need, by section
  std::vector<int64_t> blame_;                  ///< how often a section was too small, by section
  std::vector<std::pair<int, int64_t>> trail_;  ///< supports to restore
  std::vector<size_t> trail_marks_;
  std::vector<int>
      open_items_;  ///< the open items of every node on the path; never grows, so spans stay valid
  std::unordered_set<State, StateHash> hopeless_;  ///< parts that could not be packed, of this try
  int64_t nodes_left_ = 0;
  // Scratch of one node.
  std::vector<int64_t> least_, load_, lowest_, top1_, top2_;
  std::vector<int> top1_of_;
};

}  // namespace spyre::solve
