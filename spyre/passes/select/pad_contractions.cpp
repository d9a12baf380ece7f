#include "spyre/passes/select/pad_contractions.h"

#include <algorithm>

#include "spyre/graph/device_graph.h"

namespace spyre {
namespace {

// Of the 16-bit format, the only one that is multiplied.
int64_t lanes() {
  return elems_per_stick(DataFormat::SEN169_FP16);
}

// Operands that were given zeros already: the products of an fp32 product's parts share them. Only of buffers that
// are written once, so that what was read before is what is read now.
class Known {
 public:
  explicit Known(const DeviceGraph& graph) : writers_(graph.buffers.size(), 0) {
    for (const DeviceNode& node : graph.nodes) ++writers_[static_cast<size_t>(node.op.output.buffer)];
    for (size_t id = 0; id < writers_.size(); ++id) {
      if (!graph.is_local(static_cast<BufferId>(id))) writers_[id] = 2;
    }
  }

  // The same operand of another product over the same loops, or null.
  const Access* find(const Access& given, bool left, const std::vector<Loop>& loops) const {
    const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.given == given && entry.left == left && entry.loops == loops;
    });
    return known == entries_.end() ? nullptr : &known->zeroed;
  }
  void add(const Access& given, bool left, const std::vector<Loop>& loops, const Access& zeroed) {
    const auto id = static_cast<size_t>(given.buffer);
    if (id < writers_.size() && writers_[id] == 1) entries_.push_back({given, left, loops, zeroed});
  }

 private:
  struct Entry {
    Access given;
    bool left;
    std::vector<Loop> loops;
    Access zeroed;
  };
  std::vector<int> writers_;
  std::vector<Entry> entries_;
};

// Rewrites one matmul; new nodes go in front of it.
class Padder {
 public:
  Padder(DeviceGraph& graph, DeviceNode& node, const Loop& k, std::vector<DeviceNode>& before, Known& known)
      : graph_(graph),
        node_(node),
        k_(k),
        padded_(round_up(k.extent, lanes())),
        before_(before),
        known_(known) {}

  void run() {
    DeviceOp& op = node_.op;
    op.inputs[0] = zeroed(op.inputs[0], true);
    op.inputs[1] = zeroed(op.inputs[1], false);
  }

 private:
  // k and the loops of the node that an access depends on, none of them reduced. A broadcast operand depends
  // on k no more than on others, but has zeros behind it all the same.
  std::vector<Loop> loops_of(const Access& access) const {
    const std::set<std::string> used = access.index.symbols();
    std::vector<Loop> loops;
    for (Loop loop : node_.loops) {
      if (loop.name != k_.name && !used.contains(loop.name)) continue;
      loop.reduced = false;
      loops.push_back(std::move(loop));
    }
    return loops;
  }

  BufferId constant(double value) {
    return graph_.add_buffer({.name = "constant",
                              .dtype = HostType::kFloat16,
                              .size = {},
                              .stride = {},
                              .fill = Fill{.start = value, .step = 0}});
  }

  void emit(std::vector<Loop> loops, DeviceOp op) {
    DeviceNode node{
        {.name = graph_.buffers[static_cast<size_t>(op.output.buffer)].name, .loops = std::move(loops)},
        std::move(op)};
    make_step_of(node_, node);
    before_.push_back(std::move(node));
  }

  // Row-major over the loops, with `k` as long as `k_extent`.
  Access new_buffer(const std::string& name, const std::vector<Loop>& loops, int64_t k_extent) {
    Buffer buffer{.name = name, .dtype = HostType::kFloat16};
    for (const Loop& loop : loops) buffer.size.push_back(loop.name == k_.name ? k_extent : loop.extent);
    buffer.stride = contiguous_strides(buffer.size);
    Expr index;
    for (size_t i = 0; i < loops.size(); ++i) index = index + buffer.stride[i] * Expr::symbol(loops[i].name);
    return {graph_.add_buffer(std::move(buffer)), index};
  }

  Access zeroed(const Access& operand, bool left) {
    const std::vector<Loop> loops = loops_of(operand);
    if (const Access* before = known_.find(operand, left, loops)) return *before;
    const Access result = left ? zeroed_left(operand) : zeroed_right(operand);
    known_.add(operand, left, loops, result);
    return result;
  }

  Access zeroed_left(const Access& x) {
    const Expr k = Expr::symbol(k_.name);
    // Counted from the end: exact near it, where it matters, and negative before it whatever the rounding.
    const Fill count{.start = -static_cast<double>(k_.extent), .step = 1};
    const BufferId ramp = graph_.add_buffer(
        {.name = "ramp", .dtype = HostType::kFloat16, .size = {padded_}, .stride = {1}, .fill = count});
    Loop loop = k_;
    loop.reduced = false;
    const Access inside = new_buffer("inside", {loop}, k_.extent);
    emit({loop}, {.op = OpId::lesserthan, .inputs = {{ramp, k}, {constant(0), Expr()}}, .output = inside});
    std::vector<Loop> loops = loops_of(x);
    std::stable_partition(loops.begin(), loops.end(), [&](const Loop& l) { return l.name != k_.name; });
    const Access zeroed = new_buffer("left_zeroed", loops, k_.extent);
    emit(loops, {.op = OpId::where3, .inputs = {inside, x, {constant(0), Expr()}}, .output = zeroed});
    return zeroed;
  }

  Access zeroed_right(const Access& w) {
    std::vector<Loop> loops = loops_of(w);
    const Access padded = new_buffer("right_padded", loops, padded_);
    emit(loops, {.op = OpId::identity, .inputs = {w}, .output = padded});
    std::vector<Loop> rest = loops;
    for (Loop& loop : rest) {
      if (loop.name == k_.name) loop.extent = padded_ - k_.extent;
    }
    const int64_t stride = padded.index.coefficient(k_.name);
    const Access behind{padded.buffer, padded.index + Expr::constant(stride * k_.extent)};
    emit(rest, {.op = OpId::identity, .inputs = {{constant(0), Expr()}}, .output = behind});
    return padded;
  }

  DeviceGraph& graph_;
  DeviceNode& node_;
  const Loop k_;
  const int64_t padded_;
  std::vector<DeviceNode>& before_;
  Known& known_;
};

}  // namespace

const Loop* sums_part_of_stick(const DeviceNode& node) {
  const auto k = std::find_if(node.loops.begin(), node.loops.end(),
                              [](const Loop& l) { return l.reduced && l.extent != 1; });
  const bool part = node.op.is_matmul() && k != node.loops.end() && k->extent % lanes() != 0;
  return part ? &*k : nullptr;
}

void pad_contractions(DeviceGraph& graph) {
  Known known(graph);
  std::vector<DeviceNode> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (DeviceNode& node : nodes) {
    if (const Loop* k = sums_part_of_stick(node)) Padder(graph, node, *k, graph.nodes, known).run();
    graph.nodes.push_back(std::move(node));
  }
}

}  // namespace spyre
