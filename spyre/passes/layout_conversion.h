#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "spyre/graph/graph.h"
#include "spyre/passes/layout_candidates.h"

namespace spyre {

/// How to copy a buffer from one of its layouts to another, and what that moves.
struct Conversion {
  std::vector<DeviceLayout> steps;  ///< one copy each; the last reads like the one asked for
  int64_t bytes = 0;                ///< read and written
};

/// A node that copies the whole buffer, element by element, from one layout to another; they make it what it
/// is. Dimensions that a layout walks through as one are one loop.
Node copy_node(const Graph& graph, BufferId from, BufferId to, const DeviceLayout& from_layout,
               const DeviceLayout& to_layout);

/// Device bytes of a layout.
int64_t bytes_of(const DeviceLayout& layout);

/// Conversions between the candidates of each buffer, found when asked for and remembered.
class Conversions {
 public:
  Conversions(const Graph& graph, const std::vector<std::vector<DeviceLayout>>& candidates,
              Weaving weaving = Weaving::kByNarrowing)
      : graph_(graph), candidates_(candidates), weaving_(weaving) {}

  /// Null: the card cannot.
  const Conversion* find(BufferId buffer, int from, int to);

 private:
  std::optional<Conversion> search(BufferId buffer, const DeviceLayout& from, const DeviceLayout& to) const;
  std::optional<Conversion> weave(BufferId buffer, const DeviceLayout& from, const DeviceLayout& to) const;
  std::optional<Conversion> path(BufferId buffer, const DeviceLayout& from,
                                 std::vector<DeviceLayout> steps) const;
  bool direct(BufferId buffer, const DeviceLayout& from, const DeviceLayout& to) const;

  const Graph& graph_;
  const std::vector<std::vector<DeviceLayout>>& candidates_;
  Weaving weaving_;
  std::map<std::pair<BufferId, std::pair<int, int>>, std::optional<Conversion>> known_;
};

}  // namespace spyre
