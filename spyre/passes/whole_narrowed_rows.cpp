#include "spyre/passes/whole_narrowed_rows.h"

#include "spyre/graph/device_op.h"

namespace spyre {
namespace {

constexpr int64_t kStick = 64;  // elements of 16 bits

// The innermost loop that runs at all, if it ends inside a stick; else -1.
int ragged_loop(const Node& node) {
  if (device_op(node).op != "fp32todl16") return -1;
  for (int i = static_cast<int>(node.loops.size()) - 1; i >= 0; --i) {
    const int64_t extent = node.loops[static_cast<size_t>(i)].extent;
    if (extent > 1) return extent % kStick == 0 ? -1 : i;
  }
  return -1;
}

// A row-major buffer over the loops of a node, and where the node is in it; rows along `row` take whole
// sticks.
struct WholeRows {
  Buffer buffer;
  Expr index;

  WholeRows(const Node& node, const Buffer& narrowed, int row) {
    buffer = {.name = narrowed.name + "_whole", .dtype = narrowed.dtype};
    int64_t stride = 1;
    for (int i = static_cast<int>(node.loops.size()) - 1; i >= 0; --i) {
      const Loop& loop = node.loops[static_cast<size_t>(i)];
      buffer.size.insert(buffer.size.begin(), loop.extent);
      buffer.stride.insert(buffer.stride.begin(), stride);
      index = index + stride * Expr::symbol(loop.name);
      stride *= i == row ? (loop.extent + kStick - 1) / kStick * kStick : loop.extent;
    }
    buffer.storage = stride;
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
