#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/passes/scratchpad/core_view.h"
#include "spyre/passes/scratchpad/graph_access.h"
#include "spyre/solve/problem.h"

namespace spyre {

struct ScratchpadOptions;

/// A copy of a resident buffer for readers that are divided otherwise: a shuffle makes it on the ring, just
/// before the first of them.
struct Relayout {
  CoreView view;
  std::vector<BufferTouch> readers;
  Bytes per_core;
  Bytes saves;  ///< what its readers would fetch from device memory
};

/// What of a buffer is asked for: touches `first` to `last` of GraphAccess::touches, in LX from the first of
/// them to the last. All of them by default; less is a *stretch* of its life:
///
///     touches   w r r . . . r r      made, read, at rest, read again
///     stretch   0 . 2                made in LX and copied out; given up after touch 2
///     stretch             3 4        fetched again before touch 3
struct Asked {
  size_t first = 0, last = std::numeric_limits<size_t>::max();
  std::vector<const CoreView*> off_ring;  ///< interned views whose readers no shuffle is to serve
};

/// What it would mean to keep one buffer in LX, for all of its life or a stretch of it.
///
///     made by its writer, or, a graph input, fetched once       ->  `view`: who holds what
///       read by nodes divided the same way                           `direct`
///       read by nodes divided otherwise, over the ring               `relayouts`
///       read by nodes that cannot read LX, or a graph output         `off_chip`, `copied_out`: device memory
///       read after the stretch                                       gets a copy, once
///
/// Scratchpads are private: a node can read the buffer in LX only when every core finds there exactly the
/// part it works on.
struct Residency {
  std::string barred;               ///< why it must stay in device memory; empty: it may live in LX
  bool clone = false;               ///< fetched: a copy of a graph input, or of what was made before
  bool copied_out = false;          ///< it is also needed in device memory
  CoreView view;                    ///< of the cores that make it
  std::vector<BufferTouch> direct;  ///< writers, and readers with the same view
  std::vector<Relayout> relayouts;
  std::vector<BufferTouch> off_chip;  ///< readers of the copy in device memory
  std::string why_off_chip;           ///< of the first of them
  Bytes per_core;                     ///< what each core holds; of a barred buffer all of it
  Bytes saves;  ///< device memory traffic of all cores that goes away, relayouts included
  Bytes pays;   ///< traffic of the copies in and out; already taken off `saves`
};

/// When LX holds what: node n runs at step 2n + 1, copies that are made just before it at step 2n.
solve::Lifetime life_of(const Residency& residency);
solve::Lifetime life_of(const Relayout& relayout);

/// One operand of one node under some division of that node.
struct TouchView {
  const CoreView* view = nullptr;  ///< interned, so that equal views are one address; none: `reason` says why
  std::string_view reason;
  Bytes moved;  ///< device memory traffic of this operand when it is off chip
};

struct ResidencyRules {
  bool clone_inputs = true;
  bool copy_out = true;        ///< buffers that device memory needs too may be made in LX
  bool relayouts = true;       ///< readers divided otherwise may be served over the ring
  bool across_bundles = true;  ///< LX keeps what a bundle leaves for a later one
};

/// The rules that options of planning stand for.
ResidencyRules rules_of(const ScratchpadOptions& options);

/// Decides what may live in LX. Reasons, the first that applies:
///
///   two names                             nodes see its memory as different elements
///   not touched | empty tensor | constant | graph output | mutation target | graph input (read once)
///   index tensor or indirectly accessed   where it is touched is known only at run time
///   turned from a woven stick             what a node with joined loops touches has no host index
///   read by restickify                    turning parts of sticks reads across cores
///   padding left by restickify            a turned dimension ends inside a stick
///   partial or offset access              one LX address stands for the whole part of a core
///   core division mismatch                two nodes disagree about who holds what, and no shuffle helps
///   written, read in another bundle       LX may be wiped between two bundles (unless `across_bundles`)
///   no consumer                           nothing would be saved
///
/// A reader's reason bars the buffer only when nothing is saved without that reader.
class ResidencyJudge {
 public:
  ResidencyJudge(const Graph& graph, const GraphAccess& access, const ResidencyRules& rules);

  /// `touches` are parallel to `GraphAccess::touches` of the buffer; views are those of this judge's
  /// `intern`. A stretch holds all nodes that write the buffer or none of them, and is barred otherwise.
  Residency judge(BufferId buffer, std::span<const TouchView> touches, const Asked& asked = {}) const;
  /// The touches of a buffer as the graph is divided now.
  std::vector<TouchView> touches_of(BufferId buffer) const;

  const CoreView* intern(const CoreView& view) const;
  /// One operand of an operation that is divided so.
  TouchView view_of(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts) const;
  /// Whether the buffer stays in device memory however the work is divided.
  bool is_barred(BufferId buffer) const { return bars_.contains(buffer); }

 private:
  struct ViewOrder {
    bool operator()(const CoreView& a, const CoreView& b) const;
  };

  std::string bar_of(BufferId id) const;
  std::string bar_of(const BufferTouch& touch) const;
  bool can_copy(BufferId id, const CoreView& from, const CoreView& to) const;
  bool can_divide_copy(BufferId id, const CoreView& view) const;
  const CoreView* fetched_origin(BufferId id, std::span<const TouchView> touches, const Asked& asked,
                                 std::optional<int64_t> home) const;
  std::optional<int64_t> home_bundle(BufferId id, std::span<const TouchView> seen, const Asked& asked) const;
  bool elsewhere(const BufferTouch& touch, std::optional<int64_t> home) const;

  const Graph& graph_;
  const GraphAccess& access_;
  const ResidencyRules rules_;
  int64_t most_cores_ = 1;  // of any node
  mutable std::set<CoreView, ViewOrder> views_;
  std::map<BufferId, std::string> bars_;
  mutable std::map<BufferId, std::optional<NormalOp>> copy_models_;
  mutable std::map<std::pair<BufferId, const CoreView*>, bool> copies_;
};

/// One way to hold a buffer in LX.
struct Holding {
  BufferId buffer = -1;
  Asked asked;
  Residency residency;
};

/// Whether the writer of the child reads the parent, element for element as it writes the child and on the
/// same cores, in an operation that may write over its input.
bool lies_alike(const Graph& graph, const GraphAccess& access, const Holding& child, const Holding& parent);

/// Whether the child may take over the slot of the parent: they lie alike, and nobody reads the parent there
/// later.
bool may_take_over(const Graph& graph, const GraphAccess& access, const Holding& child,
                   const Holding& parent);

}  // namespace spyre
