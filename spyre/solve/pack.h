#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "spyre/solve/deadline.h"
#include "spyre/solve/pack_infer.h"
#include "spyre/solve/pack_state.h"
#include "spyre/solve/sections.h"

namespace spyre::solve {

enum class PackVerdict {
  kPacked,      ///< offsets found
  kImpossible,  ///< proven: there are none
  kGaveUp,      ///< the deadline passed first
};

/// Decides whether all chosen items of an island fit together: a complete search.
///
/// Of all packings one has the smallest sum of offsets. In it every item rests on another one or on the
/// ground, and none could drop; it is enough to look for that one. At each node the lowest item that does not
/// wait is chosen (pack_state.h has the words). Either it goes below all open items it meets, and is laid on
/// its support; or some of them goes below it, and it waits:
///
///     node {A, B, C open}
///      ├── lay A               B and C go above A
///      └── A waits             so A lies above B's or C's top
///           ├── lay B ...
///           └── B waits ...    until nothing is left that could be the lowest
///
/// Each node looks ahead (pack_infer.h). A failure names the laid items it comes from; nodes whose item is
/// not among them are left without trying their other branch, as it would fail in the same way.
///
/// An in-place pair may be laid as one *chain* on a common base, the greater of the two supports; a child is
/// otherwise laid like any other item. Chains grow along declared pairs.
class Packer {
 public:
  explicit Packer(const Island& island, PackTricks tricks = {});

  /// Tries to pack the chosen items, for at most `node_limit` nodes and the work left.
  PackVerdict pack(const std::vector<int>& chosen, int64_t node_limit, Deadline& deadline);

  /// After kPacked: the offset of each chosen item, by item index.
  int64_t offset(int item) const { return state_.offset(item); }

 private:
  using Items = std::span<const int>;  ///< sorted by first section
  struct Chain {
    std::vector<int> items;
    int64_t base;
  };
  /// What the search below a node depends on, as 128 bits of hash.
  struct Fingerprint {
    uint64_t a, b;
    friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  };
  struct FingerprintHash {
    size_t operator()(const Fingerprint& print) const { return print.a; }
  };

  PackVerdict pack_in_order(const std::vector<int>& chosen, int order, int64_t nodes, Deadline& deadline);
  PackVerdict search(Items open, Deadline& deadline);
  PackVerdict search_parts(std::vector<Items> parts, Deadline& deadline);
  PackVerdict search_connected(Items open, Deadline& deadline);
  PackVerdict lay_lowest(Items open, int head, Deadline& deadline);
  std::vector<Items> cut_parts(Items open) const;
  int lowest(Items open) const;
  std::vector<Chain> chains_from(int head) const;
  void extend_chain(Chain chain, std::vector<Chain>& out) const;
  bool fits(const Chain& chain) const;
  void make_wait(int head, const ItemSet& reason);
  Fingerprint fingerprint(Items open) const;
  void blame_all_around(Items open);

  const Island& island_;
  PackTricks tricks_;
  PackState state_;
  PackInference inference_;
  std::vector<int> rank_;
  /// The open items of every node on the path, one list after the other; never grows beyond what is reserved,
  /// so spans stay valid.
  std::vector<int> open_items_;
  std::unordered_set<Fingerprint, FingerprintHash>
      hopeless_;  ///< parts that could not be packed, of this try
  int64_t nodes_left_ = 0;
};

}  // namespace spyre::solve
