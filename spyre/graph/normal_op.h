#pragma once

#include <span>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/device_access.h"
#include "spyre/graph/device_graph.h"

namespace spyre {

/// A device operation with its loops cut and every operand in device coordinates, in the order index
/// tensors, inputs, output.
struct NormalOp {
  DeviceOp op;
  NormalAccess access;

  size_t index_count() const { return op.indices.size(); }
  const DeviceAccess& index(size_t i) const { return access.operands[i]; }
  const DeviceAccess& input(size_t i) const { return access.operands[op.indices.size() + i]; }
  const DeviceAccess& output() const { return access.operands.back(); }
};

/// A dimension of which an access takes the first of `size` positions, for what a turn or a conversion moves besides: the
/// lanes that single elements leave unused, the second of two sticks. One that holds nothing there; of what is only read
/// any will do. None: there is no such dimension.
const AccessDim* spare_dim(const DeviceAccess& access, int64_t size, bool written);

/// A copy that turns the stick to another dimension, or one that moves between whole sticks and one element
/// per stick; the card has an operation of its own for it, in 16 bits only.
bool is_restickify(const NormalOp& op);

/// Whether the card can run this node with these layouts, one per operand in the order above. A null layout
/// leaves its operand out of the question, so that the answer is about the others.
///
/// Rules of the sticks:
///  - pointwise: inputs run along the output's stick, or hold one element per stick and do not depend on it;
///  - reductions: along another dimension the stick stays, along the stick one element per stick comes out;
///  - matmul: the left operand's stick is k, the right one's and the output's are n;
///  - element arrangements agree wherever there is a stick to arrange.
Result<NormalOp> normalize_op(const GraphBuffers& graph, const DeviceNode& node,
                              std::span<const DeviceLayout* const> layouts);

/// The normal form of a node whose layouts are decided; every pass after assign-layouts asks for it here. It is cheap (all
/// nodes of a model's layer together take a thousandth of its compilation), so nobody keeps one that could grow old.
Result<NormalOp> normal_form(const GraphBuffers& graph, const DeviceNode& node);

/// The layouts of a node's operands in the order of NormalOp. Needs assigned layouts.
std::vector<const DeviceLayout*> operand_layouts(const GraphBuffers& graph, const DeviceNode& node);

}  // namespace spyre
