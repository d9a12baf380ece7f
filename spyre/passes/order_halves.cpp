#include "spyre/passes/order_halves.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "spyre/graph/device_op.h"
#include "spyre/layout/tile_axis.h"

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
};

std::optional<RawSticks> raw_sticks(const Buffer& buffer, const DeviceLayout& words) {
  const bool widened = words.element_arrangement == ElementArrangement::DL16_TO_FP32;
  const std::optional<size_t> tile = tile_axis(words);
  if (!widened || words.stride_map.back() != 1 || !tile) return std::nullopt;
  RawSticks raw{.row = buffer.reach()};
  std::optional<Outer> pairs;
  int64_t step = kHalves;
  for (size_t d = words.device_size.size() - 1; d-- > 0;) {
    const int64_t size = words.device_size[d], stride = words.stride_map[d];
    if (d == *tile) {
      if (size % 2 != 0) return std::nullopt;
      raw.stick_stride = step;
      raw.row = std::min(raw.row, size * kWords);
      pairs = Outer{{.name = "pair", .extent = size / 2}, 2 * kWords, 2 * step};
    } else if (size > 1) {
      if (stride <= 0) return std::nullopt;
      raw.outer.push_back({{.name = fmt::format("o{}", d), .extent = size}, stride, step});
    }
    step *= size;
  }
  if (!pairs) return std::nullopt;
  for (const Outer& outer : raw.outer) raw.row = std::min(raw.row, outer.host_stride);
  // The longest last: it becomes the stick while lanes are rows.
  std::sort(raw.outer.begin(), raw.outer.end(),
            [](const Outer& a, const Outer& b) { return a.loop.extent < b.loop.extent; });
  raw.outer.push_back(std::move(*pairs));
  return raw;
}

std::vector<Loop> joined(std::vector<Loop> first, const std::vector<Loop>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

Expr row_major(const std::vector<Loop>& loops) {
  Expr index;
  for (const Loop& loop : loops) index = loop.extent * index + Expr::symbol(loop.name);
  return index;
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

std::optional<OrderedHalves> order_halves(Graph& graph, BufferId id, const DeviceLayout& words) {
  const Buffer given = graph.buffers[static_cast<size_t>(id)];
  const std::optional<RawSticks> raw = raw_sticks(given, words);
  if (!raw) return std::nullopt;
  rename_to_raw(graph.buffers[static_cast<size_t>(id)], words);

  const Loop h{.name = "h", .extent = 2}, lane{.name = "lane", .extent = kHalves};
  const Loop g{.name = "g", .extent = 8}, e{.name = "e", .extent = 4}, w{.name = "w", .extent = 2};
  const auto symbol = [](const Loop& loop) { return Expr::symbol(loop.name); };
  std::vector<Loop> outside, inside;  // the last but the pairs is inside: rows of it
  Expr at_raw, at_host;
  for (size_t i = 0; i < raw->outer.size(); ++i) {
    const Outer& outer = raw->outer[i];
    (i + 2 == raw->outer.size() ? inside : outside).push_back(outer.loop);
    at_raw = at_raw + outer.raw_stride * symbol(outer.loop);
    if (i + 1 < raw->outer.size()) at_host = at_host + 2 * outer.host_stride * symbol(outer.loop);
  }
  const std::vector<Loop> in_lanes = joined(joined(outside, {lane, h}), inside);
  const std::vector<Loop> in_order = joined(joined(outside, {g, h, e, w}), inside);
  const BufferId lanes = add_local(graph, given.name + "_lanes", in_lanes);
  const BufferId columns = add_local(graph, given.name + "_columns", in_order);

  Buffer ordered{.name = given.name + "_ordered", .dtype = HostType::kFloat16};
  const Loop row{.name = "row", .extent = 2 * raw->row};
  std::vector<Loop> by_row = outside;
  by_row.back() = row;  // the pairs and what they hold
  for (size_t i = 0; i + 1 < raw->outer.size(); ++i) {
    ordered.size.push_back(raw->outer[i].loop.extent);
    ordered.stride.push_back(2 * raw->outer[i].host_stride);
  }
  ordered.size.insert(ordered.size.end(), {raw->row, 2});
  ordered.stride.insert(ordered.stride.end(), {2, 1});
  OrderedHalves result{.ordered = graph.add_buffer(std::move(ordered))};

  Expr from_lanes = row_major(in_lanes);
  const int64_t lane_stride = from_lanes.coefficient(lane.name);
  from_lanes = from_lanes + -lane_stride * symbol(lane) + lane_stride * (8 * symbol(g) + 2 * symbol(e) + symbol(w));
  // One row of 2 * row halves where there are 128 for each pair.
  std::vector<Loop> padded = by_row;
  padded.back().extent = 2 * kHalves * raw->outer.back().loop.extent;
  result.nodes = {
      copy(graph, in_lanes, {id, at_raw + raw->stick_stride * symbol(h) + symbol(lane)}, {lanes, row_major(in_lanes)}),
      copy(graph, in_order, {lanes, from_lanes}, {columns, row_major(in_order)}),
      copy(graph, joined(by_row, inside), {columns, row_major(joined(padded, inside))},
           {result.ordered, at_host + symbol(row)}),
  };
  return result;
}

}  // namespace spyre
