#pragma once

#include <string>
#include <utility>
#include <vector>

#include "spyre/graph/call.h"
#include "spyre/graph/expr.h"
#include "spyre/ops/ops.h"

namespace spyre {

/// One element of one buffer, as a function of a node's loops.
struct Access {
  BufferId buffer = -1;
  Expr index;

  friend bool operator==(const Access&, const Access&) = default;
};

/// One operation of the card over the loops of its node: what it reads, what it does, what it writes.
///
///     v0 = load x[100*p0 + r0]
///     v1 = reduce.sum v0                 ->   op sum, reduces, inputs {x[100*p0 + r0]}, output {s[p0]}
///     store s[p0] v1
///
/// A body that only copies is an identity. Index tensors that an access reads through (`IndirectAccess('v0')`) are listed
/// apart, as v0, v1, ... in this order.
struct DeviceOp {
  OpId op = OpId::identity;
  bool reduces = false;
  std::vector<Access> inputs;
  std::vector<std::pair<std::string, Access>> indices;
  Access output;
  std::vector<std::pair<std::string, double>> constants;

  bool is_matmul() const { return op == OpId::batchmatmul; }

  friend bool operator==(const DeviceOp&, const DeviceOp&) = default;
};

/// Calls `visit` with every access that reads, index tensors first.
template <class Op, class Visit>
void for_each_read(Op& op, Visit&& visit) {
  for (auto& [name, access] : op.indices) visit(access);
  for (auto& access : op.inputs) visit(access);
}

/// Calls `visit` with every access: index tensors, inputs, output.
template <class Op, class Visit>
void for_each_access(Op& op, Visit&& visit) {
  for_each_read(op, visit);
  visit(op.output);
}

}  // namespace spyre
