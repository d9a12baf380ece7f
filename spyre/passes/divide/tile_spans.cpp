#include "spyre/passes/divide/tile_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "spyre/passes/divide/divide_work.h"
#include "spyre/passes/divide/division/axis_facts.h"
#include "spyre/passes/divide/division/choose_splits.h"
#include "spyre/passes/divide/node_part.h"
#include "spyre/passes/layout/assign_layouts.h"
#include "spyre/passes/layout/layout_conversion.h"

namespace spyre {
namespace {

constexpr int64_t kMostSpanParts = 64;

bool may_reach_far(const DeviceGraph& graph, const DeviceNode& node) {
  const std::vector<const DeviceLayout*> layouts = operand_layouts(graph, node);
  return std::any_of(layouts.begin(), layouts.end(), [](const DeviceLayout* layout) {
    return bytes_of(*layout) > spyre_card().span_limit.count();
  });
}

// Parts run one after the other: none may read what an earlier one has written.
bool reads_its_target(const DeviceNode& node) {
  const DeviceOp& op = node.op;
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Access& input) {
    return input.buffer == op.output.buffer && !(input.index == op.output.index);
  });
}

// Bytes between the first and the last stick of a table that every core may be sent to: all positions that come from
// an index, and those that the loops walk.
int64_t span_of_table(const NormalOp& op, const DeviceAccess& table, int64_t itemsize) {
  int64_t below = itemsize * table.lanes;
  for (const AccessDim& dim : table.dims) below *= dim.size;
  for (const AccessDim& dim : table.dims) {
    below /= dim.size;
    int64_t positions = dim.indirect.empty() ? 1 : dim.size;
    if (dim.loop >= 0) {
      const int64_t extent = op.access.loops[static_cast<size_t>(dim.loop)].extent;
      positions = dim.tile ? ceil_div(extent, table.lanes) : extent;
    }
    if (positions > 1) return positions * below;
  }
  return itemsize;
}

bool tables_are_in_reach(const DeviceGraph& graph, const DeviceNode& node, const NormalOp& op) {
  const std::vector<const DeviceLayout*> layouts = operand_layouts(graph, node);
  for (size_t i = 0; i < layouts.size(); ++i) {
    const DeviceAccess& access = op.access.operands[i];
    const bool table = std::any_of(access.dims.begin(), access.dims.end(),
                                   [](const AccessDim& dim) { return !dim.indirect.empty(); });
    const int64_t itemsize = bits_of(layouts[i]->device_dtype) / 8;
    if (table && span_of_table(op, access, itemsize) > spyre_card().span_limit.count()) return false;
  }
  return true;
}

bool divides(const DeviceGraph& graph, const DeviceNode& node, int64_t cores) {
  const Result<NormalOp> op = normal_form(graph, node);
  return op.ok() && tables_are_in_reach(graph, node, op.value()) &&
         choose_splits(division_problem(graph, node, op.value(), cores)).ok();
}

// Units of one part when a loop is run in about `parts`: whole multiples of the cores where there are enough.
int64_t units_of_part(int64_t units, int64_t parts, int64_t cores) {
  const int64_t even = ceil_div(units, parts);
  return even < cores ? even : std::max(cores, units / parts / cores * cores);
}

// A transpose of sticks drops what lies past the end of a dimension, so a part that ends inside a stick is copied first,
// into a buffer that ends there: the slice, then the transpose of the slice. None where that does not help.
std::optional<std::vector<DeviceNode>> by_slice(DeviceGraph& graph, const DeviceNode& part, int64_t cores) {
  const DeviceOp& op = part.op;
  const auto& layout = graph.buffers[static_cast<size_t>(op.inputs[0].buffer)].layout;
  if (op.op != OpId::identity || !op.indices.empty()) return std::nullopt;
  Buffer slice{.name = part.name + "_slice",
               .dtype = graph.buffers[static_cast<size_t>(op.output.buffer)].dtype};
  std::vector<int64_t> order;
  int64_t stick = -1;
  Expr index;
  for (size_t i = 0; i < part.loops.size(); ++i) {
    const Loop& loop = part.loops[i];
    const bool lane = op.inputs[0].index.coefficient(loop.name) == layout->stride_map.back();
    (lane ? stick : order.emplace_back()) = static_cast<int64_t>(i);
    slice.size.push_back(loop.extent);
    index = loop.extent * index + Expr::symbol(loop.name);
  }
  if (stick < 0) return std::nullopt;
  order.push_back(stick);
  slice.stride = contiguous_strides(slice.size);
  const auto lies = DeviceLayout::ordered(slice.size, slice.stride, layout->device_dtype, order);
  if (!lies.ok()) return std::nullopt;
  slice.layout = lies.value();
  const Access own{graph.add_buffer(std::move(slice)), index};
  DeviceNode copy = part, restickify = part;
  copy.name += "_slice";
  copy.op = {.inputs = op.inputs, .output = own};
  restickify.op.inputs = {own};
  if (divides(graph, copy, cores) && divides(graph, restickify, cores)) return std::vector{copy, restickify};
  graph.buffers.pop_back();
  return std::nullopt;
}

std::optional<std::vector<DeviceNode>> in_parts(DeviceGraph& graph, const DeviceNode& node,
                                                const AxisFacts& axis, int64_t parts, int64_t cores) {
  const int64_t units = units_of_part(axis.size, parts, cores);
  if (units >= axis.size) return std::nullopt;
  const int64_t step = units * axis.lanes;
  std::vector<DeviceNode> result;
  for (int64_t begin = 0; begin < axis.extent; begin += step) {
    const int64_t extent = std::min(step, axis.extent - begin);
    DeviceNode part = part_of(node, axis.name, begin, extent, fmt::format("_part{}", begin / step));
    if (divides(graph, part, cores)) {
      result.push_back(std::move(part));
      continue;
    }
    const bool last =
        begin + extent == axis.extent;  // only then no buffer is left behind by parts that fail later
    std::optional<std::vector<DeviceNode>> two = last ? by_slice(graph, part, cores) : std::nullopt;
    if (!two) return std::nullopt;
    result.insert(result.end(), two->begin(), two->end());
  }
  return result;
}

std::optional<std::vector<DeviceNode>> within_reach(DeviceGraph& graph, const DeviceNode& node,
                                                    int64_t cores) {
  const Result<NormalOp> op = normal_form(graph, node);
  if (!op.ok()) return std::nullopt;
  const Result<std::vector<AxisFacts>> facts = axis_facts(division_problem(graph, node, op.value(), cores));
  if (!facts.ok()) return std::nullopt;
  for (int64_t parts = 1; parts <= kMostSpanParts; ++parts) {
    for (const AxisFacts& axis : facts.value()) {
      const bool known = std::any_of(node.loops.begin(), node.loops.end(), [&](const Loop& loop) {
        return loop.name == axis.name && !loop.reduced;
      });
      if (!known) continue;
      if (auto found = in_parts(graph, node, axis, parts, cores)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

Status tile_spans(DeviceGraph& graph, int64_t cores) {
  std::vector<DeviceNode> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (DeviceNode& node : nodes) {
    const bool fits = node.loops.empty() || !may_reach_far(graph, node) || reads_its_target(node) ||
                      divides(graph, node, cores);
    std::optional<std::vector<DeviceNode>> parts;
    if (!fits) parts = within_reach(graph, node, cores);
    if (!parts) {
      graph.nodes.push_back(std::move(node));
      continue;
    }
    for (DeviceNode& part : *parts) graph.nodes.push_back(std::move(part));
  }
  return Status();
}

}  // namespace spyre
