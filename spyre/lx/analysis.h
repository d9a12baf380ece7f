#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/lx/core_view.h"
#include "spyre/lx/graph_access.h"
#include "spyre/lx/moves.h"
#include "spyre/lx/operand_traffic.h"

namespace spyre::lx {

/// One operand of one node under some division of that node.
struct TouchView {
  const CoreView* view = nullptr;  ///< interned, so that equal views are one address; none: `reason` says why
  std::string_view reason;
  OperandTraffic moved;  ///< of this operand when it is off chip
};

/// What planning knows of one graph: who touches what, which buffers LX must not hold however the work is divided
/// (eligibility.h), and which copies the card can make. What is known stays known, so that a search may ask about a
/// thousand divisions of one node.
///
/// Refers to the graph, which must stay as it is.
class Analysis {
 public:
  /// Needs layouts and cut loops.
  static Result<Analysis> of(const DeviceGraph& graph, MoveSet moves);

  const DeviceGraph& graph() const { return *graph_; }
  const GraphAccess& access() const { return access_; }
  MoveSet moves() const { return moves_; }
  const std::vector<BufferTouch>& touches(BufferId buffer) const;

  /// Why the buffer stays in device memory, and why touch number `touch` of one that need not cannot be served from LX,
  /// however the work is divided; empty: nothing speaks against it.
  const std::string& ineligible(BufferId buffer) const;
  const std::string& ineligible(BufferId buffer, size_t touch) const;

  /// The one address that stands for all views that equal this one.
  const CoreView* intern(const CoreView& view) const;
  /// One operand of an operation that is divided so.
  TouchView view_of(const NormalOp& op, size_t operand, std::span<const DeviceLayout* const> layouts) const;
  /// The touches of a buffer as the graph is divided now, parallel to `touches`.
  const std::vector<TouchView>& views(BufferId buffer) const;

  /// Whether the card can copy the whole buffer from one division (an interned view) to another. Equal views: every core
  /// copies its own part, of which device memory may be one side. Different ones: a shuffle.
  bool can_copy(BufferId buffer, const CoreView& from, const CoreView& to) const;
  /// A view in which as many cores as can each hold a part of their own; none: there is no such copy.
  const CoreView* spread(BufferId buffer) const;

 private:
  struct ViewOrder {
    bool operator()(const CoreView& a, const CoreView& b) const;
  };
  struct Reasons {
    std::string whole;
    std::vector<std::string> touches;
  };

  Analysis(const DeviceGraph& graph, GraphAccess access, MoveSet moves);
  bool can_divide_copy(BufferId id, const CoreView& view) const;

  const DeviceGraph* graph_;
  GraphAccess access_;
  MoveSet moves_;
  int64_t most_cores_ = 1;           // of any node
  std::vector<Reasons> ineligible_;  // by buffer
  mutable std::set<CoreView, ViewOrder> interned_;
  mutable std::vector<std::optional<std::vector<TouchView>>> views_;  // by buffer, once asked for
  mutable std::map<BufferId, std::optional<NormalOp>> copy_models_;
  mutable std::map<std::pair<BufferId, const CoreView*>, bool> copies_;
};

}  // namespace spyre::lx
