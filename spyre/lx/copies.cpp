#include "spyre/lx/copies.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "spyre/graph/core_map.h"

namespace spyre::lx {
namespace {

// An undivided node that copies along the loops of the basis.
DeviceNode plain_copy(const DeviceGraph& graph, const GraphAccess& access, const BufferTouch& basis,
                      BufferId from, BufferId to, OpId op) {
  const NormalOp& model = access.ops[basis.node];
  DeviceNode node;
  for (size_t i = 0; i < model.access.loops.size(); ++i) {
    if (!access.access(basis).uses(static_cast<int>(i))) continue;
    const Loop& loop = model.access.loops[i];
    node.loops.push_back({.name = loop.name, .extent = loop.extent});
  }
  const Expr& index = model.access.indices[basis.operand];
  node.name = graph.buffers[static_cast<size_t>(to)].name;
  node.source = graph.nodes[basis.node].source;
  node.op = {.op = op, .inputs = {{from, index}}, .output = {to, index}};
  return node;
}

using TwoLayouts = std::array<const DeviceLayout*, 2>;

std::optional<NormalOp> normal_copy(const DeviceGraph& graph, const DeviceNode& node, TwoLayouts layouts) {
  Result<NormalOp> op = normalize_op(graph, node, layouts);
  if (!op.ok() || op.value().access.loops.size() != node.loops.size()) return std::nullopt;
  return std::move(op).value();
}

TwoLayouts both(const DeviceGraph& graph, BufferId buffer) {
  const DeviceLayout* layout = &*graph.buffers[static_cast<size_t>(buffer)].layout;
  return {layout, layout};
}

}  // namespace

const BufferTouch* whole_touch(const DeviceGraph& graph, const GraphAccess& access, BufferId buffer) {
  for (const BufferTouch& touch : access.touches[static_cast<size_t>(buffer)]) {
    const DeviceAccess& device = access.access(touch);
    const std::vector<Loop>& loops = access.ops[touch.node].access.loops;
    int64_t elements = 1;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (device.uses(static_cast<int>(i))) elements *= loops[i].extent;
    }
    const bool whole = std::all_of(device.dims.begin(), device.dims.end(), [](const AccessDim& dim) {
      return dim.indirect.empty() && dim.offset == 0 && (dim.loop >= 0 || dim.size == 1);
    });
    if (whole && elements == graph.buffers[static_cast<size_t>(buffer)].elements()) return &touch;
  }
  return nullptr;
}

std::optional<NormalOp> model_of_copy(const DeviceGraph& graph, const GraphAccess& access,
                                      const BufferTouch& basis, BufferId buffer) {
  return normal_copy(graph, plain_copy(graph, access, basis, buffer, buffer, OpId::identity),
                     both(graph, buffer));
}

bool has_view(const NormalOp& model, const DeviceLayout& layout, const CoreView& view) {
  return loops_for_view(model, 0, view, TwoLayouts{&layout, &layout}).has_value();
}

std::optional<DeviceNode> divided_copy(const DeviceGraph& graph, const GraphAccess& access,
                                       const BufferTouch& basis, BufferId from, BufferId to,
                                       const CoreView& from_view, const CoreView& to_view) {
  const bool moves = from_view != to_view;
  // Cores with the same part would all write it to device memory.
  if (!moves && from_view.shared()) return std::nullopt;
  DeviceNode node = plain_copy(graph, access, basis, from, to, moves ? OpId::shuffle : OpId::identity);
  const TwoLayouts layouts = both(graph, from);
  const auto op = normal_copy(graph, plain_copy(graph, access, basis, from, to, OpId::identity), layouts);
  if (!op) return std::nullopt;
  const auto before = loops_for_view(*op, 0, from_view, layouts);
  const auto after = loops_for_view(*op, 0, to_view, layouts);
  if (!before || !after) return std::nullopt;
  // Cores beyond the product of the splits hold copies of parts; the loops alone do not tell how many there are.
  if (moves) {
    node.op.constants = {{"from_cores", static_cast<double>(from_view.cores())},
                         {"to_cores", static_cast<double>(to_view.cores())}};
  }
  for (size_t i = 0; i < node.loops.size(); ++i) {
    node.loops[i].split = before->loops[i].split;
    node.loops[i].step = before->loops[i].step;
    if (!moves) continue;
    node.loops[i].to_split = after->loops[i].split;
    node.loops[i].to_step = after->loops[i].step;
  }
  return node;
}

std::optional<CoreView> spread_view(const DeviceGraph& graph, const GraphAccess& access,
                                    const BufferTouch& basis, BufferId buffer, int64_t cores) {
  auto op = model_of_copy(graph, access, basis, buffer);
  if (!op) return std::nullopt;
  // Outermost dimensions first: slices of those are the longest runs of sticks. A dimension takes the largest share of the
  // cores that divides it, so that all slices are of one size.
  int64_t left = cores;
  for (const AccessDim& dim : op->input(0).dims) {
    if (dim.loop < 0 || left == 1) continue;
    Loop& loop = op->access.loops[static_cast<size_t>(dim.loop)];
    loop.split = std::gcd(dim.size, left);
    left /= loop.split;
  }
  if (left != 1) return std::nullopt;
  const ViewOrReason view = core_view(*op, 0, both(graph, buffer));
  const auto* found = std::get_if<CoreView>(&view);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace spyre::lx
