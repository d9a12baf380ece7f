#include "spyre/passes/whole_converted_rows.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "spyre/graph/device_op.h"

namespace spyre {
namespace {

constexpr std::string_view kNarrow = "fp32todl16", kWiden = "dl16tofp32";

int64_t in_stick() {
  return elems_per_stick(DataFormat::SEN169_FP16);
}

// The loop along the rows that a node touches, if they end inside a stick; else -1.
int ragged_row(const Node& node, const Access& access) {
  int row = -1;
  int64_t step = 0;
  for (const ExprTerm& term : access.index.terms()) {
    for (size_t i = 0; i < node.loops.size(); ++i) {
      const bool walks = term.kind == AtomKind::kSymbol && term.name == node.loops[i].name;
      if (!walks || node.loops[i].extent == 1 || (row >= 0 && term.coefficient >= step)) continue;
      row = static_cast<int>(i);
      step = term.coefficient;
    }
  }
  return row >= 0 && node.loops[static_cast<size_t>(row)].extent % in_stick() != 0 ? row : -1;
}

int ragged_row(const Node& node, std::string_view conversion, RowsOf rows) {
  const DeviceOp op = device_op(node);
  return op.op == conversion ? ragged_row(node, rows == RowsOf::kSource ? op.inputs[0] : op.output) : -1;
}

bool is_woven_input(const Graph& graph, const Access& access) {
  const Buffer& buffer = graph.buffers[static_cast<size_t>(access.buffer)];
  return buffer.is_input && buffer.layout &&
         buffer.layout->element_arrangement == ElementArrangement::FP32_TO_DL16;
}

// The loop along the sticks of a woven input, if they end inside one; else -1. Its sticks may run along any dimension.
int woven_ragged_row(const Graph& graph, const Node& node, const Access& access) {
  if (!is_woven_input(graph, access)) return -1;
  const int64_t stick = graph.buffers[static_cast<size_t>(access.buffer)].layout->stride_map.back();
  for (size_t i = 0; i < node.loops.size(); ++i) {
    if (access.index.coefficient(node.loops[i].name) != stick || node.loops[i].extent == 1) continue;
    return node.loops[i].extent % in_stick() != 0 ? static_cast<int>(i) : -1;
  }
  return ragged_row(node, access);
}

bool converts_ragged_rows(const Graph& graph, std::string_view conversion, RowsOf rows) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return ragged_row(node, conversion, rows) >= 0; });
}

// A buffer over the loops of a node with the loop `row` innermost, in whole sticks, and where the node is in
// it.
struct WholeBuffer {
  Buffer buffer;
  Expr index;

  WholeBuffer(const Node& node, const Buffer& ragged, int row) {
    buffer = {.name = ragged.name + "_whole", .dtype = ragged.dtype};
    const int64_t extent = node.loops[static_cast<size_t>(row)].extent;
    buffer.storage = round_up(extent, in_stick());
    add(node.loops[static_cast<size_t>(row)], 1);
    for (int i = static_cast<int>(node.loops.size()) - 1; i >= 0; --i) {
      if (i == row) continue;
      add(node.loops[static_cast<size_t>(i)], buffer.storage);
      buffer.storage *= node.loops[static_cast<size_t>(i)].extent;
    }
  }

 private:
  void add(const Loop& loop, int64_t stride) {
    buffer.size.insert(buffer.size.begin(), loop.extent);
    buffer.stride.insert(buffer.stride.begin(), stride);
    index = index + stride * Expr::symbol(loop.name);
  }
};

// Hands every such conversion whose result `chosen` says, as node and as operation, to `write`, which appends what
// replaces it: something with the 16-bit side in `whole`.
template <typename Chosen, typename Write>
void replace_conversions(Graph& graph, std::string_view conversion, RowsOf rows, const Chosen& chosen,
                         const Write& write) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (Node& node : nodes) {
    const int row = ragged_row(node, conversion, rows);
    if (row < 0 || !chosen(node.target)) {
      graph.nodes.push_back(std::move(node));
      continue;
    }
    const DeviceOp op = device_op(node);
    const Access halves = op.op == kNarrow ? op.output : op.inputs[0];
    WholeBuffer whole(node, graph.buffers[static_cast<size_t>(halves.buffer)], row);
    const BufferId id = graph.add_buffer(std::move(whole.buffer));
    write(std::move(node), op, Access{id, whole.index});
  }
}

// Narrows the values that `chosen` says into rows of whole sticks, and copies them from there. Pairs of what was
// narrowed and where it is now.
template <typename Chosen>
std::vector<std::pair<Access, Access>> narrow_into_whole_rows(Graph& graph, const Chosen& chosen) {
  std::vector<std::pair<Access, Access>> moved;
  const auto narrow_first = [&](Node node, DeviceOp narrow, const Access& whole) {
    const Access target = std::exchange(narrow.output, whole);
    moved.emplace_back(target, whole);
    const HostType dtype = graph.buffers[static_cast<size_t>(target.buffer)].dtype;
    Node copy = node;
    copy.name += "_back";
    set_device_op(graph, node, narrow, dtype);
    set_device_op(graph, copy, {.op = "identity", .inputs = {whole}, .output = target}, dtype);
    graph.nodes.push_back(std::move(node));
    graph.nodes.push_back(std::move(copy));
  };
  replace_conversions(graph, kNarrow, RowsOf::kSource, chosen, narrow_first);
  return moved;
}

}  // namespace

bool narrows_ragged_rows(const Graph& graph) {
  return converts_ragged_rows(graph, kNarrow, RowsOf::kSource);
}

void make_narrowed_rows_whole(Graph& graph, Columns columns) {
  narrow_into_whole_rows(graph, [&](BufferId id) {
    const std::vector<int64_t>& size = graph.buffers[static_cast<size_t>(id)].size;
    return columns == Columns::kToo || size.empty() || size.back() != 1;
  });
}

void make_multiplied_rows_whole(Graph& graph, size_t operand) {
  // By themselves, or after zeros were put behind their sums (pad_contractions.h).
  std::set<BufferId> multiplied;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const DeviceOp op = device_op(*node);
    if (op.is_matmul()) {
      multiplied.insert(op.inputs[operand].buffer);
    } else if (multiplied.contains(op.output.buffer) && op.op != kNarrow) {
      for (const Access& input : op.inputs) multiplied.insert(input.buffer);
    }
  }
  const auto moved = narrow_into_whole_rows(graph, [&](BufferId id) { return multiplied.contains(id); });
  // What is widened again reads the rows as they were narrowed, not in the order that products want.
  for (Node& node : graph.nodes) {
    DeviceOp op = device_op(node);
    if (op.op != kWiden) continue;
    for (const auto& [from, to] : moved) {
      if (op.inputs[0] == from) op.inputs[0] = to;
    }
    set_device_op(graph, node, op, graph.buffers[static_cast<size_t>(op.output.buffer)].dtype);
  }
}

bool widens_ragged_rows(const Graph& graph, RowsOf rows) {
  return converts_ragged_rows(graph, kWiden, rows);
}

void make_widened_rows_whole(Graph& graph, RowsOf rows) {
  const auto widen_after = [&](Node node, DeviceOp widen, const Access& whole) {
    const Access source = std::exchange(widen.inputs[0], whole);
    const auto dtype_of = [&](const Access& access) {
      return graph.buffers[static_cast<size_t>(access.buffer)].dtype;
    };
    Node copy = node;
    copy.name += "_whole";
    DeviceOp identity{.op = "identity", .inputs = {source}, .output = whole};
    std::swap(identity.indices, widen.indices);
    set_device_op(graph, copy, identity, dtype_of(source));
    set_device_op(graph, node, widen, dtype_of(widen.output));
    graph.nodes.push_back(std::move(copy));
    graph.nodes.push_back(std::move(node));
  };
  replace_conversions(
      graph, kWiden, rows, [](BufferId) { return true; }, widen_after);
}

bool reads_woven_ragged_rows(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const DeviceOp op = device_op(node);
    return std::any_of(op.inputs.begin(), op.inputs.end(),
                       [&](const Access& input) { return woven_ragged_row(graph, node, input) >= 0; });
  });
}

void make_woven_inputs_whole(Graph& graph) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (Node& node : nodes) {
    DeviceOp op = device_op(node);
    const HostType made = graph.buffers[static_cast<size_t>(op.output.buffer)].dtype;
    for (Access& input : op.inputs) {
      if (woven_ragged_row(graph, node, input) < 0) continue;
      const std::set<std::string> walked = input.index.symbols();
      Node copy{.name = node.name + "_whole", .loops = {}, .aten = node.aten, .source = node.source};
      for (Loop loop : node.loops) {
        loop.reduced = false;
        if (walked.contains(loop.name)) copy.loops.push_back(loop);
      }
      const Buffer& source = graph.buffers[static_cast<size_t>(input.buffer)];
      const HostType dtype = source.dtype;
      WholeBuffer whole(copy, source, woven_ragged_row(graph, copy, input));
      const Access target{graph.add_buffer(std::move(whole.buffer)), whole.index};
      set_device_op(graph, copy,
                    {.op = "identity", .inputs = {std::exchange(input, target)}, .output = target}, dtype);
      graph.nodes.push_back(std::move(copy));
    }
    set_device_op(graph, node, op, made);
    graph.nodes.push_back(std::move(node));
  }
}

}  // namespace spyre
