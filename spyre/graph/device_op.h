#pragma once

#include <string>
#include <utility>
#include <vector>

#include "spyre/graph/graph.h"
#include "spyre/ops/ops.h"

namespace spyre {

/// One element of one buffer, as a function of a node's loops.
struct Access {
  BufferId buffer = -1;
  Expr index;

  friend bool operator==(const Access&, const Access&) = default;
};

/// A node whose body is one operation of the card: what it reads, what it does, what it writes.
///
///     v0 = load x[100*p0 + r0]
///     v1 = reduce.sum v0                 ->   op sum, reduces, inputs {x[100*p0 + r0]}, output {s[p0]}
///     store s[p0] v1
///
/// A body that only copies is an identity. Index tensors that an access reads through
/// (`IndirectAccess('v0')`) are listed apart, under the name of their value.
struct DeviceOp {
  OpId op = OpId::identity;
  bool reduces = false;
  std::vector<Access> inputs;
  std::vector<std::pair<std::string, Access>> indices;
  Access output;
  std::vector<std::pair<std::string, double>> constants;

  bool is_matmul() const { return op == OpId::batchmatmul; }
};

/// Fails (as a bug of ours) on a node that still has a body of several operations.
DeviceOp device_op(const Node& node);
/// Whether a node has that shape.
bool is_device_op(const Node& node);

/// The node with this operation: the inverse of `device_op`.
void set_device_op(const Graph& graph, Node& node, const DeviceOp& op, HostType dtype);

}  // namespace spyre
