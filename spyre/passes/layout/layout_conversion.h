#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "spyre/graph/device_graph.h"
#include "spyre/passes/layout/layout_candidates.h"
#include "spyre/passes/layout/permute_lanes.h"

/// How a buffer gets from one layout to another: the cheapest path through a small graph of its own.
///
///     states   the candidates of the buffer, and of an argument those on the way between them (layout_candidates.h); each
///              again with a dimension for unused lanes, and with rows in the order of interleaved lanes
///     edges    one copy that `normalize_op` accepts: a restickify, or whole sticks to another place;
///              a permutation of lanes (permute_lanes.h), which is several copies under other names
///     price    bytes read and written
///
/// Most layouts are one edge apart, and no path is cheaper than its only edge. What takes more is what the card has no
/// single operation for:
///
///     whole sticks -> one element to a stick     copied to where there is a dimension of 64 for the lanes, then restickified
///     interleaved lanes -> the standard order    restickified, rows put in order, restickified back (ADR 0018)
///     32-bit sticks -> along another dimension   half-words restickified three times (ADR 0025, 0049)
namespace spyre {

/// One edge: where it leads, and for a permutation of lanes the copies it stands for.
struct ConversionStep {
  DeviceLayout to;
  std::shared_ptr<const LanePermutation> lanes;  ///< none: one copy, element by element
};

struct Conversion {
  std::vector<ConversionStep> steps;  ///< the last reads like the layout asked for
  int64_t bytes = 0;                  ///< read and written
};

/// A node that copies the whole buffer, element by element, from one layout to another; they make it what it
/// is. Dimensions that a layout walks through as one are one loop.
DeviceNode copy_node(const DeviceGraph& graph, BufferId from, BufferId to, const DeviceLayout& from_layout,
                     const DeviceLayout& to_layout);

/// Device bytes of a layout.
int64_t bytes_of(const DeviceLayout& layout);

/// Conversions between the candidates of each buffer, found when asked for and remembered.
class Conversions {
 public:
  Conversions(const DeviceGraph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
              LaneMoves moves = {});
  ~Conversions();

  /// Null: the card cannot.
  const Conversion* find(BufferId buffer, int from, int to);

 private:
  class States;
  static constexpr int kMostPermutations = 256, kPermutationsPerBuffer = 32;

  const DeviceGraph& graph_;
  const std::vector<std::vector<DeviceLayout>>& candidates_;
  const LaneMoves moves_;
  LanePermutations permutations_;
  std::map<BufferId, std::unique_ptr<States>> states_;
  std::map<std::pair<BufferId, std::pair<int, int>>, std::optional<Conversion>> known_;
};

}  // namespace spyre
