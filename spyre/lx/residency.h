#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/lx/analysis.h"
#include "spyre/solve/problem.h"

namespace spyre::lx {

/// A copy of a resident buffer for readers that are divided otherwise: a shuffle makes it on the ring, just
/// before the first of them.
struct Relayout {
  CoreView view;
  std::vector<BufferTouch> readers;
  Bytes per_core;
  Bytes saves;  ///< what its readers would fetch from device memory
};

/// What of a buffer is to be held: touches `first` to `last` of GraphAccess::touches, in LX from the first of
/// them to the last. All of them by default; less is a *segment* of its live range:
///
///     touches   w r r . . . r r      made, read, idle, read again
///     segment   0 . 2                made in LX and copied out; given up after touch 2
///     segment             3 4        fetched again before touch 3
struct HoldRequest {
  size_t first = 0, last = std::numeric_limits<size_t>::max();
  std::vector<const CoreView*> off_ring;  ///< interned views whose readers no shuffle is to serve
};

/// What it would mean to keep one buffer in LX, for its whole live range or a segment of it.
///
///     made by its writer, or, a graph input, fetched once       ->  `view`: who holds what
///       read by nodes divided the same way                           `direct`
///       read by nodes divided otherwise, over the ring               `relayouts`
///       read by nodes that cannot read LX, or a graph output         `off_chip`, `copied_out`: device memory
///       read after the segment                                       gets a copy, once
///
/// Scratchpads are private: a node can read the buffer in LX only when every core finds there exactly the
/// part it works on.
struct Residency {
  std::string ineligible;           ///< why it must stay in device memory; empty: it may live in LX
  bool clone = false;               ///< fetched: a copy of a graph input, or of what was made before
  bool copied_out = false;          ///< it is also needed in device memory
  CoreView view;                    ///< of the cores that make it
  std::vector<BufferTouch> direct;  ///< writers, and readers with the same view
  std::vector<Relayout> relayouts;
  std::vector<BufferTouch> off_chip;  ///< readers of the copy in device memory
  std::string why_off_chip;           ///< of the first of them
  Bytes per_core;                     ///< what each core holds; of an ineligible buffer all of it
  Bytes saves;  ///< device memory traffic of all cores that goes away, relayouts included
  Bytes pays;   ///< traffic of the copies in and out; already taken off `saves`
};

/// When LX holds what: node n runs at step 2n + 1, copies that are made just before it at step 2n.
solve::Lifetime life_of(const Residency& residency);
solve::Lifetime life_of(const Relayout& relayout);
/// Steps of a graph; copies may be made behind its last node.
size_t steps_of(const DeviceGraph& graph);

/// Decides whether the buffer may live in LX while its nodes are divided as `seen` says, parallel to
/// Analysis::touches, with views of this analysis. Besides the reasons of eligibility.h that hold for every division:
///
///   partial or offset access          one LX address stands for the whole part of a core
///   core division mismatch            two nodes disagree about who holds what, and no shuffle helps
///   written, read in another bundle   LX may be wiped between two bundles (unless Move::kCrossBundles)
///   written meanwhile                 a segment holds all nodes that write the buffer or none of them
///   read before it is all written     a copy is made of the whole buffer
///   graph input, read once            a copy of it would cost what it saves
///   no consumer                       nothing would be saved
///
/// A reader's reason makes the buffer ineligible only when nothing is saved without that reader.
Residency residency_of(const Analysis& analysis, BufferId buffer, std::span<const TouchView> seen,
                       const HoldRequest& request = {});

/// One way to hold a buffer in LX.
struct Holding {
  BufferId buffer = -1;
  HoldRequest request;
  Residency residency;
};

}  // namespace spyre::lx
