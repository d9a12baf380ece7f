#pragma once

#include <optional>
#include <vector>

#include "spyre/graph/graph.h"

namespace spyre {

/// The halves of a 32-bit input that widening has left in another order (DL16_TO_FP32: column 8g + 4h + e of 64 lies in
/// stick h of a pair, at 4g + e), copied into a local buffer in the standard one. Lanes become rows, rows change places,
/// and become lanes again, as in ADR 0018:
///
///     x float32[m, 64]     raw [h, m, l]    l = 8g + 2e + w: the lane of half w
///     t[l, h, m] = raw[h, m, l];   u[g, h, e, w, m] = t[g, e, w, h, m];   ordered[m, q] = u[q, m]     q = 16g + 8h + 2e + w
struct OrderedHalves {
  BufferId ordered = -1;    ///< indexed like the input, in halves
  std::vector<Node> nodes;  ///< to run first
};

/// Renames the input `id` of `graph` to what lies in its sticks, and adds the local buffer; the copies are left to the
/// caller. `words` is the layout it has in 32 bits. None, and nothing changed, for other orders.
std::optional<OrderedHalves> order_halves(Graph& graph, BufferId id, const DeviceLayout& words);

}  // namespace spyre
