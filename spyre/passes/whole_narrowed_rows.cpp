#include "spyre/passes/whole_narrowed_rows.h"

#include "spyre/graph/device_op.h"

namespace spyre {
namespace {

int64_t in_stick() {
  return elems_per_stick(DataFormat::SEN169_FP16);
}

// The loop along the rows of what is narrowed, if they end inside a stick; else -1.
int ragged_loop(const Node& node) {
  const DeviceOp op = device_op(node);
  if (op.op != "fp32todl16") return -1;
  int row = -1;
  int64_t step = 0;
  for (const ExprTerm& term : op.inputs[0].index.terms()) {
    for (size_t i = 0; i < node.loops.size(); ++i) {
      const bool walks = term.kind == AtomKind::kSymbol && term.name == node.loops[i].name;
      if (!walks || node.loops[i].extent == 1 || (row >= 0 && term.coefficient >= step)) continue;
      row = static_cast<int>(i);
      step = term.coefficient;
    }
  }
  return row >= 0 && node.loops[static_cast<size_t>(row)].extent % in_stick() != 0 ? row : -1;
}

// A buffer over the loops of a node with the loop `row` innermost, in whole sticks, and where the node is in
// it.
struct WholeRows {
  Buffer buffer;
  Expr index;

  WholeRows(const Node& node, const Buffer& narrowed, int row) {
    buffer = {.name = narrowed.name + "_whole", .dtype = narrowed.dtype};
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

}  // namespace

bool narrows_ragged_rows(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (ragged_loop(node) >= 0) return true;
  }
  return false;
}

void make_narrowed_rows_whole(Graph& graph) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (Node& node : nodes) {
    const int row = ragged_loop(node);
    if (row < 0) {
      graph.nodes.push_back(std::move(node));
      continue;
    }
    DeviceOp narrow = device_op(node);
    const Access target = narrow.output;
    const HostType dtype = graph.buffers[static_cast<size_t>(target.buffer)].dtype;
    WholeRows whole(node, graph.buffers[static_cast<size_t>(target.buffer)], row);
    const BufferId id = graph.add_buffer(std::move(whole.buffer));
    narrow.output = {id, whole.index};
    Node copy = node;
    copy.name += "_back";
    set_device_op(graph, node, narrow, dtype);
    set_device_op(graph, copy, {.op = "identity", .inputs = {{id, whole.index}}, .output = target}, dtype);
    graph.nodes.push_back(std::move(node));
    graph.nodes.push_back(std::move(copy));
  }
}

}  // namespace spyre
