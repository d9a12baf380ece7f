#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/passes/scratchpad/core_view.h"
#include "spyre/passes/scratchpad/graph_access.h"
#include "spyre/solve/problem.h"

namespace spyre {

/// A copy of a resident buffer for readers that are divided otherwise: a shuffle makes it on the ring, just
/// before the first of them.
struct Relayout {
  CoreView view;
  std::vector<BufferTouch> readers;
  Bytes per_core;
  Bytes saves;  ///< what its readers would fetch from device memory
};

/// What it would mean to keep one buffer in LX.
///
///     made by its writer, or, a graph input, fetched once       ->  `view`: who holds what
///       read by nodes divided the same way                           `direct`
///       read by nodes divided otherwise, over the ring               `relayouts`
///       read by nodes that cannot read LX, or a graph output         `off_chip`, `copied_out`: device memory
///                                                                    gets a copy, once
///
/// Scratchpads are private: a node can read the buffer in LX only when every core finds there exactly the
/// part it works on.
struct Residency {
  std::string barred;               ///< why it must stay in device memory; empty: it may live in LX
  bool clone = false;               ///< a graph input: its copy is meant
  bool copied_out = false;          ///< it is also needed in device memory
  CoreView view;                    ///< of the cores that make it
  std::vector<BufferTouch> direct;  ///< writers, and readers with the same view
  std::vector<Relayout> relayouts;
  std::vector<BufferTouch> off_chip;  ///< readers of the copy in device memory
  std::string why_off_chip;           ///< of the first of them
  Bytes per_core;                     ///< what each core holds; of a barred buffer all of it
  Bytes saves;  ///< device memory traffic of all cores that goes away, relayouts included
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

/// Decides what may live in LX. Reasons, the first that applies:
///
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
  /// `intern`.
  Residency judge(BufferId buffer, std::span<const TouchView> touches) const;
  /// The touches of a buffer as the graph is divided now.
  std::vector<TouchView> touches_of(BufferId buffer) const;

  const CoreView* intern(const CoreView& view) const;
  /// From now on no shuffle serves this view of the buffer: there was no room for the copy.
  void refuse_relayout(BufferId buffer, const CoreView& view);
  /// Whether the buffer stays in device memory however the work is divided.
  bool is_barred(BufferId buffer) const { return bars_.contains(buffer); }
  /// From now on the buffer stays in device memory.
  void bar(BufferId buffer, std::string reason) { bars_[buffer] = std::move(reason); }

 private:
  struct ViewOrder {
    bool operator()(const CoreView& a, const CoreView& b) const;
  };

  std::string bar_of(BufferId id) const;
  std::string bar_of(const BufferTouch& touch) const;
  bool can_shuffle(BufferId id, const CoreView& from, const CoreView& to) const;
  bool can_copy(BufferId id, const CoreView& view) const;
  const CoreView* input_origin(BufferId id, std::span<const TouchView> touches,
                               std::optional<int64_t> home) const;
  std::optional<int64_t> home_bundle(BufferId id, std::span<const TouchView> touches) const;
  bool elsewhere(const BufferTouch& touch, std::optional<int64_t> home) const {
    return home && graph_.nodes[touch.node].bundle != *home;
  }

  const Graph& graph_;
  const GraphAccess& access_;
  const ResidencyRules rules_;
  int64_t most_cores_ = 1;  // of any node
  mutable std::set<CoreView, ViewOrder> views_;
  std::map<BufferId, std::string> bars_;
  std::map<BufferId, std::vector<CoreView>> refused_;
  mutable std::map<BufferId, std::optional<NormalOp>> copy_models_;
  mutable std::map<std::pair<BufferId, const CoreView*>, bool> copies_;
};

/// Buffers whose slot the child may take over, in operand order: its writer reads them last, element for
/// element as it writes the child, in an operation that may write over its input.
std::vector<BufferId> in_place_parents(const Graph& graph, const GraphAccess& access,
                                       const std::vector<Residency>& residencies, BufferId child);

}  // namespace spyre
