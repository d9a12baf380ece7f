#include "spyre/passes/layout/layout_candidates.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "spyre/graph/device_graph.h"
#include "spyre/layout/dense_tensor.h"
#include "spyre/layout/tile_axis.h"

namespace spyre {
namespace {

int64_t fp16_in_stick() {
  return elems_per_stick(DataFormat::SEN169_FP16);
}

struct Axis {
  int64_t size, stride;
  friend bool operator==(const Axis&, const Axis&) = default;
};

// Dimensions of more than one position, by falling stride.
std::vector<Axis> axes_of(const DeviceGraph& graph, BufferId id) {
  const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
  std::vector<Axis> axes;
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.size[d] > 1 && buffer.stride[d] > 0) {
      axes.push_back({walkable_extent(graph, id, d), buffer.stride[d]});
    }
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
  return axes;
}

// The strides of axes behind the one that an index steps along, up to the first that a loop walks.
void note_reach(const Expr& index, int64_t step, const std::vector<Axis>& axes, std::set<int64_t>& crossed) {
  int64_t walked = std::numeric_limits<int64_t>::max();
  for (const ExprTerm& term : index.terms()) {
    if (term.kind == AtomKind::kSymbol && term.coefficient > step)
      walked = std::min(walked, term.coefficient);
  }
  for (const Axis& axis : axes) {
    if (axis.stride > step && axis.stride < walked) crossed.insert(axis.stride);
  }
}

// Strides that some loop or index steps over on its way: the dimensions on both sides are walked as one. An
// index may reach as far as nothing else walks (device_access.cpp).
void note_crossings(const Expr& index, const std::vector<Loop>& loops, const std::vector<Axis>& axes,
                    std::set<int64_t>& crossed) {
  for (const ExprTerm& term : index.terms()) {
    if (term.kind == AtomKind::kIndirect) note_reach(index, term.coefficient, axes, crossed);
    if (term.kind != AtomKind::kSymbol) continue;
    for (const Loop& loop : loops) {
      if (loop.name != term.name) continue;
      for (const Axis& axis : axes) {
        if (axis.stride > term.coefficient && axis.stride <= term.coefficient * (loop.extent - 1))
          crossed.insert(axis.stride);
      }
    }
  }
}

// Strides at which some loop cuts the axis of a stick into rows that do not end with a stick: heads of 32,
// say.
void note_short_rows(const Expr& index, const std::vector<Axis>& axes, std::set<int64_t>& cuts) {
  if (axes.empty()) return;
  const Axis& row = axes.back();
  for (const ExprTerm& term : index.terms()) {
    const int64_t step = term.coefficient;
    const bool inside = term.kind == AtomKind::kSymbol && step > row.stride && step < row.size * row.stride;
    if (inside && row.size * row.stride % step == 0 && step % row.stride == 0 &&
        step / row.stride % fp16_in_stick() != 0)
      cuts.insert(step);
  }
}

std::vector<Axis> cut(std::vector<Axis> axes, int64_t step) {
  const Axis row = axes.back();
  axes.back() = {row.size * row.stride / step, step};
  axes.push_back({step / row.stride, row.stride});
  return axes;
}

std::vector<Axis> merged(const std::vector<Axis>& axes, const std::set<int64_t>& crossed) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    const bool dense = !result.empty() && result.back().stride == axis.stride * axis.size;
    if (dense && crossed.contains(result.back().stride)) {
      result.back() = {result.back().size * axis.size, axis.stride};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

// Whether some product has an fp32 result, in the order that widening leaves.
bool multiplies_wide(const DeviceGraph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const DeviceNode& node) {
    return node.op.is_matmul() &&
           graph.buffers[static_cast<size_t>(node.op.output.buffer)].dtype == HostType::kFloat32;
  });
}

// Orders of elements that are not the standard one: those that conversions make, here or before an input
// came.
struct Orders {
  bool widened = false, interleaved = false;
};

bool widens(const DeviceGraph& graph) {
  return multiplies_wide(graph) ||
         std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const DeviceNode& node) { return node.op.op == OpId::dl16tofp32; });
}

bool narrows(const DeviceGraph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const DeviceNode& node) { return node.op.op == OpId::fp32todl16; });
}

// Whether some input came in an order.
bool given_in(const DeviceGraph& graph, ElementArrangement order) {
  return std::any_of(graph.buffers.begin(), graph.buffers.end(), [&](const Buffer& buffer) {
    return buffer.is_input && buffer.layout && buffer.layout->element_arrangement == order;
  });
}

Orders orders_in(const DeviceGraph& graph, LaneMoves moves) {
  const bool made = narrows(graph);
  return {.widened = made || widens(graph) || given_in(graph, ElementArrangement::DL16_TO_FP32),
          .interleaved = made || moves.interleave || given_in(graph, ElementArrangement::FP32_TO_DL16)};
}

// Which of them a buffer of this format may have.
std::vector<ElementArrangement> arrangements(DataFormat format, Orders orders) {
  using enum ElementArrangement;
  std::vector<ElementArrangement> result = {STANDARD};
  if (orders.widened && format == DataFormat::IEEE_FP32) result.push_back(DL16_TO_FP32);
  if (orders.interleaved && format == DataFormat::SEN169_FP16) result.push_back(FP32_TO_DL16);
  return result;
}

void append(std::vector<DeviceLayout>& layouts, DeviceLayout layout) {
  if (std::find(layouts.begin(), layouts.end(), layout) == layouts.end())
    layouts.push_back(std::move(layout));
}

// Conversions handle whole 16-bit sticks, so the tiles of their 32-bit side come in pairs.
DeviceLayout paired(DeviceLayout layout) {
  if (const std::optional<size_t> tile = tile_axis(layout))
    layout.device_size[*tile] += layout.device_size[*tile] % 2;
  return layout;
}

Status offer(const std::vector<Axis>& axes, DataFormat format, const std::vector<ElementArrangement>& orders,
             std::vector<DeviceLayout>& layouts) {
  std::vector<int64_t> size, stride;
  for (const Axis& axis : axes) {
    size.push_back(axis.size);
    stride.push_back(axis.stride);
  }
  const auto rank = static_cast<int64_t>(axes.size());
  // The last dimension first: it is what PyTorch's own layout would be.
  for (int64_t stick = rank - 1; stick >= 0; --stick) {
    std::vector<int64_t> order;
    for (int64_t d = 0; d < rank; ++d) {
      if (d != stick) order.push_back(d);
    }
    order.push_back(stick);
    SPYRE_ASSIGN_OR_RETURN(const DeviceLayout layout, DeviceLayout::ordered(size, stride, format, order));
    const bool converts = orders.back() == ElementArrangement::DL16_TO_FP32;
    append(layouts, layout.with_element_arrangement(orders.front()));
    if (converts) append(layouts, paired(layout));
    for (size_t i = 1; i < orders.size(); ++i) {
      append(layouts, (converts ? paired(layout) : layout).with_element_arrangement(orders[i]));
    }
  }
  std::vector<int64_t> order;
  for (int64_t d = 0; d < rank; ++d) order.push_back(d);
  order.push_back(-1);
  SPYRE_ASSIGN_OR_RETURN(DeviceLayout sparse, DeviceLayout::ordered(size, stride, format, order));
  append(layouts, sparse);
  // Conversions handle whole 16-bit sticks, so a single widened element takes a pair of sticks.
  if (orders.back() == ElementArrangement::DL16_TO_FP32) {
    sparse.device_size.insert(sparse.device_size.begin(), 2);
    sparse.stride_map.insert(sparse.stride_map.begin(), -1);
    append(layouts, std::move(sparse));
  }
  return Status();
}

}  // namespace

int64_t walkable_extent(const DeviceGraph& graph, BufferId id, size_t dim) {
  const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
  const int64_t size = buffer.size[dim], stride = buffer.stride[dim];
  if (!graph.is_local(id) || size % fp16_in_stick() == 0 || stride <= 0) return size;
  int64_t next = buffer.storage;
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.size[d] > 1 && buffer.stride[d] > stride) next = std::min(next, buffer.stride[d]);
  }
  const int64_t whole = round_up(size, fp16_in_stick());
  return next == whole * stride ? whole : size;
}

LaneMoves useful_moves(const DeviceGraph& graph) {
  return {.interleave = widens(graph) || given_in(graph, ElementArrangement::FP32_TO_DL16),
          .words = std::any_of(graph.buffers.begin(), graph.buffers.end(), [](const Buffer& buffer) {
            const DataFormat format =
                buffer.layout ? buffer.layout->device_dtype : info_of(buffer.dtype).device_format;
            return elems_per_stick(format) < fp16_in_stick();
          })};
}

DeviceLayout with_lane_dimension(const DeviceLayout& layout) {
  DeviceLayout result = layout;
  const auto before_stick = static_cast<std::ptrdiff_t>(layout.device_size.size()) - 1;
  result.device_size.insert(result.device_size.begin() + before_stick, layout.device_size.back());
  result.stride_map.insert(result.stride_map.begin() + before_stick, -1);
  return result;
}

std::optional<DeviceLayout> with_interleaved_rows(const DeviceLayout& layout, int64_t stride) {
  const bool restickified =
      layout.element_arrangement == ElementArrangement::STANDARD && layout.stride_map.back() != stride;
  if (!restickified) return std::nullopt;
  for (size_t d = 0; d + 1 < layout.device_size.size(); ++d) {
    const int64_t size = layout.device_size[d];
    if (layout.stride_map[d] != stride || size % 64 != 0) continue;
    DeviceLayout result = layout;
    const auto at = static_cast<std::ptrdiff_t>(d);
    result.device_size[d] = size / 64;
    result.stride_map[d] = 64 * stride;
    const std::array<int64_t, 3> sizes = {8, 2, 4}, steps = {4 * stride, 32 * stride, stride};
    result.device_size.insert(result.device_size.begin() + at + 1, sizes.begin(), sizes.end());
    result.stride_map.insert(result.stride_map.begin() + at + 1, steps.begin(), steps.end());
    return result;
  }
  return std::nullopt;
}

std::vector<DeviceLayout> layouts_on_the_way(const DeviceGraph& graph, BufferId id, LaneMoves moves) {
  const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
  if (!graph.is_given(id) || !buffer.layout) return {};
  const DataFormat format = buffer.layout->device_dtype;
  const std::vector<ElementArrangement> orders = arrangements(format, orders_in(graph, moves));
  const std::vector<Axis> axes = axes_of(graph, id);
  std::vector<DeviceLayout> layouts;
  const auto add = [&](const std::vector<Axis>& others) {
    if (others != axes && !offer(others, format, orders, layouts).ok()) layouts.clear();
  };
  std::set<int64_t> outer, all;
  for (size_t d = 0; d + 1 < axes.size(); ++d) {
    all.insert(axes[d].stride);
    if (d + 2 < axes.size()) outer.insert(axes[d].stride);
  }
  add(merged(axes, outer));  // rows stay rows
  if (all != outer) add(merged(axes, all));
  const bool whole = buffer.offset == 0 && buffer.reach() == buffer.elements();
  const std::optional<DenseTensor> memory =
      whole ? dense_tensor(*buffer.layout, buffer.elements()) : std::nullopt;
  if (!memory) return layouts;
  std::vector<Axis> dims;
  for (size_t d = 0; d < memory->size.size(); ++d) dims.push_back({memory->size[d], memory->stride[d]});
  add(dims);
  return layouts;
}

Result<std::vector<std::vector<DeviceLayout>>> layout_candidates(const DeviceGraph& graph, LaneMoves moves) {
  std::vector<std::vector<Axis>> axes;
  for (size_t id = 0; id < graph.buffers.size(); ++id)
    axes.push_back(axes_of(graph, static_cast<BufferId>(id)));
  std::vector<std::set<int64_t>> crossed(graph.buffers.size()), cuts(graph.buffers.size());
  std::vector<bool> holds_moments(graph.buffers.size(), false);
  for (const DeviceNode& node : graph.nodes) {
    const auto note = [&](const Access& access) {
      const auto id = static_cast<size_t>(access.buffer);
      note_crossings(access.index, node.loops, axes[id], crossed[id]);
      note_short_rows(access.index, axes[id], cuts[id]);
    };
    const DeviceOp& op = node.op;
    for (const auto& [name, access] : op.indices) note(access);
    for (const Access& access : op.inputs) note(access);
    note(op.output);
    if (op.op == OpId::exx2) holds_moments[static_cast<size_t>(op.output.buffer)] = true;
  }

  const Orders possible = orders_in(graph, moves);

  std::vector<std::vector<DeviceLayout>> result(graph.buffers.size());
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    const Buffer& buffer = graph.buffers[id];
    const DataFormat format =
        buffer.layout ? buffer.layout->device_dtype : info_of(buffer.dtype).device_format;
    if (buffer.layout) {
      result[id].push_back(*buffer.layout);
      if (!graph.is_given(static_cast<BufferId>(id))) continue;
    } else if (buffer.is_input) {
      SPYRE_ASSIGN_OR_RETURN(DeviceLayout layout, DeviceLayout::standard(buffer.size, format));
      result[id].push_back(std::move(layout));
    }
    const std::vector<ElementArrangement> orders =
        holds_moments[id] ? std::vector{ElementArrangement::EXX2} : arrangements(format, possible);
    const std::vector<Axis> whole = merged(axes[id], crossed[id]);
    SPYRE_TRY(offer(whole, format, orders, result[id]));
    if (whole.size() != axes[id].size()) SPYRE_TRY(offer(axes[id], format, orders, result[id]));
    for (const int64_t step : cuts[id]) SPYRE_TRY(offer(cut(axes[id], step), format, orders, result[id]));
    if (holds_moments[id]) {
      for (DeviceLayout& layout : result[id])
        layout = layout.with_element_arrangement(ElementArrangement::EXX2);
    }
  }
  return result;
}

}  // namespace spyre
