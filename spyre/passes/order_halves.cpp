#include "spyre/passes/order_halves.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "spyre/graph/device_op.h"

namespace spyre {
namespace {

constexpr int64_t kWords = 32, kHalves = 64;  // of a stick

// A dimension of the input's sticks other than the pairs along its rows: a loop, where it steps in both memories.
struct Outer {
  Loop loop;
  int64_t host_stride, raw_stride;
};

struct RawSticks {
  std::vector<Outer> outer;  // the pairs of sticks last
  int64_t stick_stride = 0;  // from one stick of a pair to the other
  int64_t row = 0;           // elements of a row
  int64_t step = 1;          // from one element of a row to the next, in words
};

std::optional<RawSticks> raw_sticks(const Buffer& buffer, const DeviceLayout& words) {
  const bool widened = words.element_arrangement == ElementArrangement::DL16_TO_FP32;
  const int64_t along = words.stride_map.back();
  if (!widened || along < 1) return std::nullopt;
  RawSticks raw{.row = ceil_div(buffer.reach(), along), .step = along};
  std::optional<Outer> pairs;
  int64_t step = kHalves;
  const size_t rank = words.device_size.size(), pairs_at = rank >= 3 ? rank - 3 : 0;  // as in element_map.h
  for (size_t d = rank - 1; d-- > 0;) {
    const int64_t size = words.device_size[d], stride = words.stride_map[d];
    if (d == pairs_at) {
      if (stride != kWords * along || size % 2 != 0) return std::nullopt;
      raw.stick_stride = step;
      raw.row = std::min(raw.row, size * kWords);
      pairs = Outer{{.name = "pair", .extent = size / 2}, 2 * kWords * along, 2 * step};
    } else if (size > 1) {
      if (stride <= 0) return std::nullopt;
      raw.outer.push_back({{.name = fmt::format("o{}", d), .extent = size}, stride, step});
    }
    step *= size;
  }
  if (!pairs) return std::nullopt;
  for (const Outer& outer : raw.outer) {
    if (outer.host_stride > along) raw.row = std::min(raw.row, outer.host_stride / along);
  }
  // The last becomes the stick while lanes are rows: the longest, or what lies side by side where rows do not.
  const auto is_before = [&](const Outer& a, const Outer& b) {
    return along == 1 ? a.loop.extent < b.loop.extent : a.host_stride > b.host_stride;
  };
  std::sort(raw.outer.begin(), raw.outer.end(), is_before);
  if (along > 1 && (raw.outer.empty() || raw.outer.back().host_stride != 1)) return std::nullopt;
  raw.outer.push_back(std::move(*pairs));
  return raw;
}

std::vector<Loop> joined(std::vector<Loop> first, const std::vector<Loop>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

BufferId add_local(Graph& graph, const std::string& name, const std::vector<Loop>& loops) {
  Buffer buffer{.name = name, .dtype = HostType::kFloat16};
  for (const Loop& loop : loops) buffer.size.push_back(loop.extent);
  buffer.stride = contiguous_strides(buffer.size);
  return graph.add_buffer(std::move(buffer));
}

Node copy(const Graph& graph, std::vector<Loop> loops, const Access& from, const Access& to) {
  Node node{.name = graph.buffers[static_cast<size_t>(to.buffer)].name, .loops = std::move(loops)};
  set_device_op(graph, node, {.op = "identity", .inputs = {from}, .output = to}, HostType::kFloat16);
  return node;
}

// The buffer as it lies in memory, one dimension for each of the layout.
void rename_to_raw(Buffer& buffer, const DeviceLayout& words) {
  buffer.dtype = HostType::kFloat16;
  buffer.size = words.device_size;
  buffer.size.back() = kHalves;
  buffer.stride = contiguous_strides(buffer.size);
  buffer.offset = buffer.storage = 0;
  buffer.layout = DeviceLayout::raw(buffer.size, buffer.stride, DataFormat::SEN169_FP16);
}

}  // namespace

namespace {

// Where the halves of an element are in `ordered`, but for its place in the row.
Expr at_host(const RawSticks& raw) {
  Expr index;
  for (size_t i = 0; i + 1 < raw.outer.size(); ++i)
    index = index + 2 * raw.outer[i].host_stride * Expr::symbol(raw.outer[i].loop.name);
  return index;
}

BufferId add_ordered(Graph& graph, const Buffer& given, const RawSticks& raw) {
  std::vector<std::pair<int64_t, int64_t>> dims = {{2 * raw.step, raw.row}, {1, 2}};  // by stride
  for (size_t i = 0; i + 1 < raw.outer.size(); ++i)
    dims.emplace_back(2 * raw.outer[i].host_stride, raw.outer[i].loop.extent);
  std::stable_sort(dims.begin(), dims.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  Buffer ordered{.name = given.name + "_ordered", .dtype = HostType::kFloat16};
  for (const auto& [stride, size] : dims) {
    ordered.size.push_back(size);
    ordered.stride.push_back(stride);
  }
  return graph.add_buffer(std::move(ordered));
}

// ordered[.., q] = columns[.., q, inside]     q: the halves of a row, which are neighbours
void deliver_rows(Graph& graph, const Buffer& given, const RawSticks& raw, const std::vector<Loop>& outside,
                  const std::vector<Loop>& inside, BufferId columns, OrderedHalves& result) {
  result.ordered = add_ordered(graph, given, raw);
  std::vector<Loop> loops = outside;
  loops.back().extent = 2 * raw.row;
  result.nodes.push_back(copy(graph, joined(loops, inside), {columns, row_major(joined(outside, inside))},
                              {result.ordered, at_host(raw) + Expr::symbol(loops.back().name)}));
}

// Rows whose elements lie apart, neighbours along `inside`: halves come together behind those.
//     turned[.., j, w, c] = columns[.., 2c + w, j];   ordered[.., c, q] = turned[.., q, c]     q = 2j + w
void deliver_columns(Graph& graph, const Buffer& given, const RawSticks& raw, std::vector<Loop> outside,
                     const Loop& inside, BufferId columns, OrderedHalves& result) {
  const Loop c{.name = "c", .extent = raw.row}, w{.name = "w", .extent = 2};
  const Loop both{.name = inside.name, .extent = 2 * inside.extent};
  Expr from = row_major(joined(outside, {inside}));
  const std::string rows = outside.back().name;
  const int64_t stride = from.coefficient(rows);
  from = from + -stride * Expr::symbol(rows) + stride * (2 * Expr::symbol(c.name) + Expr::symbol(w.name));
  outside.pop_back();
  const std::vector<Loop> apart = joined(outside, {inside, w, c});
  const BufferId turned = add_local(graph, given.name + "_turned", apart);
  result.ordered = add_ordered(graph, given, raw);
  result.nodes.push_back(copy(graph, apart, {columns, from}, {turned, row_major(apart)}));
  const Expr to = at_host(raw) + -1 * Expr::symbol(inside.name) + 2 * raw.step * Expr::symbol(c.name);
  result.nodes.push_back(copy(graph, joined(outside, {c, both}),
                              {turned, row_major(joined(outside, {both, c}))}, {result.ordered, to}));
}

}  // namespace

std::optional<OrderedHalves> order_halves(Graph& graph, BufferId id, const DeviceLayout& words) {
  const Buffer given = graph.buffers[static_cast<size_t>(id)];
  const std::optional<RawSticks> raw = raw_sticks(given, words);
  if (!raw) return std::nullopt;
  rename_to_raw(graph.buffers[static_cast<size_t>(id)], words);

  const Loop h{.name = "h", .extent = 2}, lane{.name = "lane", .extent = kHalves};
  const Loop g{.name = "g", .extent = 8}, e{.name = "e", .extent = 4}, w{.name = "w", .extent = 2};
  const auto symbol = [](const Loop& loop) { return Expr::symbol(loop.name); };
  std::vector<Loop> outside, inside;  // the last but the pairs is inside: rows of it
  Expr at_raw;
  for (size_t i = 0; i < raw->outer.size(); ++i) {
    const Outer& outer = raw->outer[i];
    (i + 2 == raw->outer.size() ? inside : outside).push_back(outer.loop);
    at_raw = at_raw + outer.raw_stride * symbol(outer.loop);
  }
  const std::vector<Loop> in_lanes = joined(joined(outside, {lane, h}), inside);
  const std::vector<Loop> in_order = joined(joined(outside, {g, h, e, w}), inside);
  const BufferId lanes = add_local(graph, given.name + "_lanes", in_lanes);
  const BufferId columns = add_local(graph, given.name + "_columns", in_order);

  Expr from_lanes = row_major(in_lanes);
  const int64_t lane_stride = from_lanes.coefficient(lane.name);
  from_lanes =
      from_lanes + -lane_stride * symbol(lane) + lane_stride * (8 * symbol(g) + 2 * symbol(e) + symbol(w));
  OrderedHalves result;
  result.nodes = {
      copy(graph, in_lanes, {id, at_raw + raw->stick_stride * symbol(h) + symbol(lane)},
           {lanes, row_major(in_lanes)}),
      copy(graph, in_order, {lanes, from_lanes}, {columns, row_major(in_order)}),
  };
  // One row of 2 * row halves where there are 128 for each pair.
  outside.back() = {.name = "row", .extent = 2 * kHalves * outside.back().extent};
  raw->step == 1 ? deliver_rows(graph, given, *raw, outside, inside, columns, result)
                 : deliver_columns(graph, given, *raw, outside, inside[0], columns, result);
  return result;
}

}  // namespace spyre
