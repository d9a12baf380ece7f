#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/device_op.h"
#include "spyre/graph/graph.h"

/// A program as the card runs it: every node owns one operation of the card.
///
/// The pass `select-ops` makes it of a captured graph; every pass after that takes it, changes it and hands it on. Its
/// text is that of a captured graph whose bodies have one operation each, called as the rows of ops/table.def are:
///
///     node s (p0: 4/2; r0: 100) {
///       v0 = load x[100*p0 + r0]
///       v1 = reduce.sum v0
///       store s[p0] v1
///     }
namespace spyre {

struct DeviceNode : NodeHead {
  DeviceOp op;

  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};

struct DeviceGraph : GraphBuffers {
  std::vector<DeviceNode> nodes;

  friend bool operator==(const DeviceGraph&, const DeviceGraph&) = default;
};

/// Every decision included; parse_device_graph reads it back to an equal value.
std::string to_text(const DeviceGraph& graph);
Result<DeviceGraph> parse_device_graph(std::string_view text, std::string_view origin = "graph");

/// As for captured graphs (graph.h).
Status verify(const DeviceGraph& graph);
Status check_sizes(const DeviceGraph& graph);

}  // namespace spyre
