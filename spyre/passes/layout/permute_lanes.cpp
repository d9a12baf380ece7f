#include "spyre/passes/layout/permute_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "spyre/graph/normal_op.h"
#include "spyre/layout/tile_axis.h"
#include "spyre/passes/layout/assign_layouts.h"
#include "spyre/passes/layout/insert_copies.h"
#include "spyre/passes/layout/layout_candidates.h"
#include "spyre/passes/layout/layout_choice.h"

namespace spyre {
namespace {

constexpr int64_t kStickLanes = 64;  // of 16 bits, in a stick

// A dimension of a buffer, by what a step along it means on the host: two layouts of one buffer agree on these.
struct StickAxis {
  int64_t stride, extent;
  int64_t start = 0;  // where a view begins
  friend auto operator<=>(const StickAxis&, const StickAxis&) = default;
};

// What a layout puts where: sticks along one axis, in as many tiles as there is room for.
struct RowSticks {
  DeviceLayout layout;
  std::vector<StickAxis> outer;  // without the one along the stick, in the order of the memory
  std::optional<StickAxis> row;  // none: one element to a stick
  int64_t tiles = 1;             // sticks of a row
  int64_t lanes_each = 1;        // 16-bit lanes of an element
};

std::optional<RowSticks> sticks_of(int64_t reach, const DeviceLayout& layout) {
  const int64_t in_stick = elems_per_stick(layout.device_dtype), along = layout.stride_map.back();
  if ((in_stick != kStickLanes && in_stick != kStickLanes / 2) || layout.device_size.back() != in_stick ||
      along == 0)
    return std::nullopt;
  RowSticks sticks{.layout = layout, .outer = {}, .row = {}, .lanes_each = kStickLanes / in_stick};
  const std::optional<size_t> tile = tile_axis(layout);
  for (size_t d = 0; d + 1 < layout.device_size.size(); ++d) {
    if (tile == d) {
      sticks.tiles = layout.device_size[d];
    } else if (layout.device_size[d] > 1) {
      if (layout.stride_map[d] <= 0) return std::nullopt;  // room for lanes, or a repetition
      sticks.outer.push_back({layout.stride_map[d], layout.device_size[d]});
    }
  }
  if (along < 0) return sticks;
  // A row ends with its sticks, with the buffer, or where the next row begins.
  int64_t length = std::min(sticks.tiles * in_stick, ceil_div(reach, along));
  for (const StickAxis& axis : sticks.outer) {
    if (axis.stride == along) return std::nullopt;
    if (axis.stride > along) length = std::min(length, axis.stride / along);
  }
  sticks.row = StickAxis{along, length};
  return sticks;
}

std::vector<StickAxis*> axes_of(RowSticks& sticks) {
  std::vector<StickAxis*> axes;
  for (StickAxis& axis : sticks.outer) axes.push_back(&axis);
  if (sticks.row) axes.push_back(&*sticks.row);
  std::sort(axes.begin(), axes.end(),
            [](const StickAxis* a, const StickAxis* b) { return a->stride > b->stride; });
  return axes;
}

// Of a memory that is more than the buffer, the part that is the buffer: it starts `offset` elements into the memory, and is
// as long as another layout of it says. False: it is no such part.
bool restrict_to(RowSticks& memory, int64_t offset, RowSticks other) {
  const std::vector<StickAxis*> wanted = axes_of(other);
  size_t found = 0;
  for (StickAxis* axis : axes_of(memory)) {
    axis->start = offset / axis->stride;
    offset %= axis->stride;
    const auto same = std::find_if(wanted.begin(), wanted.end(),
                                   [&](const StickAxis* w) { return w->stride == axis->stride; });
    const int64_t extent = same == wanted.end() ? 1 : (*same)->extent;
    if (axis->start + extent > axis->extent) return false;
    axis->extent = extent;
    found += same == wanted.end() ? 0 : 1;
  }
  return offset == 0 && found == wanted.size();
}

// The digits of an index, the slowest first. Names say which axis, or which part of a row.
using IndexDigits = std::vector<Loop>;

Loop axis_digit(const StickAxis& axis) {
  return {.name = fmt::format("s{}", axis.stride), .extent = axis.extent};
}

IndexDigits axis_digits(const std::vector<StickAxis>& axes) {
  IndexDigits digits;
  for (const StickAxis& axis : axes) digits.push_back(axis_digit(axis));
  return digits;
}

IndexDigits followed_by(IndexDigits first, const IndexDigits& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

int64_t positions_of(const IndexDigits& digits) {
  return std::accumulate(digits.begin(), digits.end(), int64_t{1},
                         [](int64_t n, const Loop& digit) { return n * digit.extent; });
}

Expr row_major_index(const IndexDigits& digits) {
  Expr index;
  for (const Loop& digit : digits)
    index = digit.extent * index + (digit.extent > 1 ? Expr::symbol(digit.name) : Expr());
  return index;
}

// One side of a copy: its dimensions but the row, and the row in the order of its lanes.
struct Side {
  const RowSticks* sticks;
  IndexDigits outer, row;
  int64_t lanes;  // of a row that are copied
};

const Loop kHalfWord{.name = "w", .extent = 2};

// Sticks along other dimensions: rows are as long as they are, and an element's half-words go with it.
Side side_along_row(const RowSticks& sticks) {
  Side side{&sticks, axis_digits(sticks.outer), {}, 0};
  if (sticks.row) side.row.push_back(axis_digit(*sticks.row));
  if (sticks.lanes_each == 2) side.row.push_back(kHalfWord);
  side.lanes = positions_of(side.row);
  return side;
}

// Sticks along the same dimension: whole sticks, because what lies behind the end of a row is interleaved with it.
std::optional<Side> side_in_order(const RowSticks& sticks, int64_t sticks_of_64) {
  using enum ElementArrangement;
  const ElementArrangement order = sticks.layout.element_arrangement;
  const Loop p{.name = "p", .extent = sticks_of_64}, g{.name = "g", .extent = 8}, h{.name = "h", .extent = 2},
      e{.name = "e", .extent = 4};
  Side side{&sticks, axis_digits(sticks.outer), {}, sticks.tiles * kStickLanes};
  if (sticks.lanes_each == 2) {
    if (order != STANDARD && order != DL16_TO_FP32) return std::nullopt;
    side.row = order == STANDARD ? IndexDigits{p, g, h, e, kHalfWord} : IndexDigits{p, h, g, e, kHalfWord};
  } else {
    if (order != STANDARD && order != FP32_TO_DL16) return std::nullopt;
    side.row = order == STANDARD ? IndexDigits{p, h, g, e} : IndexDigits{p, g, h, e};
  }
  return side;
}

// The memory of a layout, as rows of lanes. Rows are further apart than they are long, so that nobody takes them for parts
// of a longer one.
Buffer lanes_of(const Side& side) {
  const RowSticks& sticks = *side.sticks;
  const int64_t pitch = 2 * sticks.tiles * kStickLanes;
  Buffer view{.name = "lanes", .dtype = HostType::kFloat16};
  DeviceLayout layout = sticks.layout;
  layout.device_dtype = DataFormat::SEN169_FP16;
  layout.element_arrangement = ElementArrangement::STANDARD;
  layout.device_size.back() = kStickLanes;
  layout.stride_map.back() = 1;
  const std::optional<size_t> tile = tile_axis(sticks.layout);
  int64_t step = pitch;
  for (size_t d = layout.device_size.size() - 1; d-- > 0;) {
    if (tile == d) {
      layout.stride_map[d] = kStickLanes;
    } else if (layout.device_size[d] == 1) {
      layout.stride_map[d] = -1;
    } else {
      layout.stride_map[d] = step;
      view.size.insert(view.size.begin(), layout.device_size[d]);
      view.stride.insert(view.stride.begin(), step);
      step *= layout.device_size[d];
    }
  }
  view.size.push_back(side.lanes);
  view.stride.push_back(1);
  view.layout = std::move(layout);
  return view;
}

Expr index_in(const Buffer& view, const Side& side, const Loop& lane) {
  const RowSticks& sticks = *side.sticks;
  const int64_t first = sticks.row ? sticks.lanes_each * sticks.row->start : 0;
  Expr index = Expr::symbol(lane.name) + Expr::constant(first);
  for (size_t i = 0; i < side.outer.size(); ++i) {
    index = index + Expr::constant(view.stride[i] * sticks.outer[i].start);
    if (side.outer[i].extent > 1) index = index + view.stride[i] * Expr::symbol(side.outer[i].name);
  }
  return index;
}

// Dense, the row innermost.
BufferId add_rows(DeviceGraph& graph, const std::string& name, const Side& side) {
  Buffer rows{.name = name, .dtype = HostType::kFloat16};
  for (const Loop& digit : side.outer) rows.size.push_back(digit.extent);
  rows.size.push_back(positions_of(side.row));
  rows.stride = contiguous_strides(rows.size);
  return graph.add_buffer(std::move(rows));
}

void append_copy(DeviceGraph& graph, IndexDigits loops, const Access& from, const Access& to) {
  std::erase_if(loops, [](const Loop& loop) { return loop.extent == 1; });
  graph.nodes.push_back(
      {{.name = graph.buffers[static_cast<size_t>(to.buffer)].name, .loops = std::move(loops)},
       {.inputs = {from}, .output = to}});
}

DeviceGraph copies_between(const Side& from, const Side& to) {
  DeviceGraph graph;
  graph.name = "lanes";
  Buffer given = lanes_of(from), wanted = lanes_of(to);
  given.is_input = true;
  wanted.name = "permuted";
  const BufferId source = graph.add_buffer(given), target = graph.add_buffer(wanted);
  graph.results = {target};
  const BufferId t = add_rows(graph, "rows", from), u = add_rows(graph, "ordered", to);
  const auto lane = [](int64_t extent) { return Loop{.name = "lane", .extent = extent}; };
  const auto whole = [&](const Side& side) {
    return row_major_index(followed_by(side.outer, {lane(positions_of(side.row))}));
  };
  const Loop read = lane(from.lanes), written = lane(std::min(to.lanes, positions_of(to.row)));
  append_copy(graph, followed_by(from.outer, {read}), {source, index_in(given, from, read)},
              {t, whole(from)});
  const IndexDigits in_order = followed_by(to.outer, to.row);
  append_copy(graph, in_order, {t, row_major_index(followed_by(from.outer, from.row))},
              {u, row_major_index(in_order)});
  append_copy(graph, followed_by(to.outer, {written}), {u, whole(to)},
              {target, index_in(wanted, to, written)});
  return graph;
}

std::optional<DeviceGraph> graph_between(const RowSticks& from, const RowSticks& to) {
  using enum ElementArrangement;
  const bool same_order = from.layout.element_arrangement == to.layout.element_arrangement;
  if (from.row && to.row && from.row->stride == to.row->stride) {
    // All that is read was written: a lane has to come from somewhere.
    const int64_t lanes = from.tiles * kStickLanes, unit = from.lanes_each * kStickLanes;
    if (same_order || from.row->start != 0 || lanes % unit != 0 || to.tiles > from.tiles) return std::nullopt;
    const std::optional<Side> one = side_in_order(from, lanes / unit),
                              other = side_in_order(to, lanes / unit);
    if (!one || !other) return std::nullopt;
    return copies_between(*one, *other);
  }
  const bool words = from.lanes_each == 2;  // of 16-bit elements one restickify does it
  if (!words || !same_order || from.layout.element_arrangement != STANDARD) return std::nullopt;
  return copies_between(side_along_row(from), side_along_row(to));
}

// The copies between two layouts of a buffer, without layouts of their own.
std::optional<DeviceGraph> graph_between(const Buffer& buffer, const DeviceLayout& from,
                                         const DeviceLayout& to, PartOf part) {
  if (from.device_dtype != to.device_dtype) return std::nullopt;
  Buffer alone = buffer;
  if (buffer.is_input) alone.offset = alone.storage = 0;
  const bool memory = part == PartOf::kMemory;
  std::optional<RowSticks> one = sticks_of(memory ? buffer.reach() : alone.reach(), from),
                           other = sticks_of(alone.reach(), to);
  if (!one || !other || !restrict_to(*one, memory ? buffer.offset : 0, *other)) return std::nullopt;
  return graph_between(*one, *other);
}

std::shared_ptr<const LanePermutation> search_layouts(const DeviceGraph& graph) {
  const auto candidates = layout_candidates(graph);
  if (!candidates.ok()) return nullptr;
  Conversions conversions(graph, candidates.value());
  // Three copies do for all but single rows, and to look for more takes five times as long.
  Result<LayoutChoice> choice = choose_layouts(graph, candidates.value(), conversions, {.copies = false});
  if (!choice.ok()) choice = choose_layouts(graph, candidates.value(), conversions);
  if (!choice.ok()) return nullptr;
  LanePermutation found{.graph = graph, .from = 0, .to = 1};
  insert_copies(found.graph, candidates.value(), conversions, choice.value());
  for (const DeviceNode& node : found.graph.nodes) {
    for (const DeviceLayout* layout : operand_layouts(found.graph, node)) found.bytes += bytes_of(*layout);
  }
  return std::make_shared<const LanePermutation>(std::move(found));
}

// All that the copies depend on.
std::vector<int64_t> question(const Buffer& buffer, const DeviceLayout& from, const DeviceLayout& to,
                              PartOf part) {
  std::vector<int64_t> key = {buffer.is_input ? 1 : 0, part == PartOf::kMemory ? 1 : 0, buffer.offset,
                              buffer.storage};
  const auto append = [&](const std::vector<int64_t>& values) {
    key.push_back(static_cast<int64_t>(values.size()));
    key.insert(key.end(), values.begin(), values.end());
  };
  append(buffer.size);
  append(buffer.stride);
  for (const DeviceLayout* layout : {&from, &to}) {
    append(layout->device_size);
    append(layout->stride_map);
    key.push_back(static_cast<int64_t>(layout->device_dtype));
    key.push_back(static_cast<int64_t>(layout->element_arrangement));
  }
  return key;
}

}  // namespace

std::shared_ptr<const LanePermutation> LanePermutations::find(const Buffer& buffer, const DeviceLayout& from,
                                                              const DeviceLayout& to, PartOf part) {
  const auto [known, asked_first] = known_.try_emplace(question(buffer, from, to, part));
  if (!asked_first) return known->second;
  const std::optional<DeviceGraph> graph = graph_between(buffer, from, to, part);
  if (graph && searches_left_-- > 0) known->second = search_layouts(*graph);
  return known->second;
}

}  // namespace spyre
