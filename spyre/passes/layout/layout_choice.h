#pragma once

#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/device_graph.h"
#include "spyre/passes/layout/layout_conversion.h"

/// Which layout every buffer gets, so that the bytes moved are fewest.
///
/// Cost of a choice: device bytes of every buffer written (padding included) plus what copies between
/// layouts read and write; a copy is made once for all its readers. A beam search over the nodes in order
/// keeps the best states; two states that agree on every buffer and copy still needed are one, so on graphs
/// whose live set is small the search is exact. A search that ends in nothing starts again without the layouts that
/// can be part of no choice.
namespace spyre {

struct LayoutChoice {
  std::vector<int> layout;  ///< by buffer: index into its candidates; -1 never written
  /// By node and operand (index tensors, then inputs): the candidate that the node reads; differs from the
  /// buffer's own where a copy is needed.
  std::vector<std::vector<int>> read_as;
  int64_t bytes = 0;
};

struct LayoutSearchOptions {
  size_t beam_width = 64;
  bool copies = true;  ///< false: every node reads its operands as they lie
};

/// Refused when some node has no legal combination; the error names the node, its operands and the reason
/// for each layout tried.
Result<LayoutChoice> choose_layouts(const DeviceGraph& graph,
                                    const std::vector<std::vector<DeviceLayout>>& candidates,
                                    Conversions& conversions, const LayoutSearchOptions& options = {});

}  // namespace spyre
