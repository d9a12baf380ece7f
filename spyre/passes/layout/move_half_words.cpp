#include "spyre/passes/layout/move_half_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "spyre/graph/device_graph.h"

namespace spyre {
namespace {

DataFormat format_of(const Buffer& buffer) {
  return buffer.layout ? buffer.layout->device_dtype : info_of(buffer.dtype).device_format;
}

bool holds_words(const Buffer& buffer) {
  return format_of(buffer) == DataFormat::IEEE_INT32 || format_of(buffer) == DataFormat::IEEE_FP32;
}

std::optional<DeviceLayout> layout_in_half_words(DeviceLayout layout) {
  const bool single = layout.stride_map.back() < 0;
  if (layout.element_arrangement != ElementArrangement::STANDARD) return std::nullopt;
  if (!single && layout.stride_map.back() != 1) return std::nullopt;
  for (int64_t& stride : layout.stride_map) stride = stride > 0 ? 2 * stride : stride;
  layout.stride_map.back() = 1;
  layout.device_size.back() = elems_per_stick(DataFormat::SEN169_FP16);
  // One word to a stick: two half-words are a row of one tile.
  for (size_t d = 0; single && d + 1 < layout.device_size.size(); ++d) {
    if (layout.device_size[d] != 1 || layout.stride_map[d] >= 0) continue;
    layout.stride_map[d] = layout.device_size.back();
    break;
  }
  layout.device_dtype = DataFormat::SEN169_FP16;
  return layout;
}

// Copies of one buffer into another; constants other than zero have no half-words that are numbers.
bool is_move(const DeviceGraph& graph, const DeviceNode& node) {
  const DeviceOp& op = node.op;
  if (op.op != OpId::identity || op.inputs.size() != 1) return false;
  const Buffer& from = graph.buffers[static_cast<size_t>(op.inputs[0].buffer)];
  const Buffer& to = graph.buffers[static_cast<size_t>(op.output.buffer)];
  const bool zero = !from.fill || from.fill == Fill{};
  return holds_words(from) && format_of(from) == format_of(to) && zero;
}

// The loop that walks an access from neighbour to neighbour.
const Loop* walks_neighbours(const DeviceNode& node, const Expr& index) {
  const auto found = std::find_if(node.loops.begin(), node.loops.end(), [&](const Loop& loop) {
    return loop.extent > 1 && index.coefficient(loop.name) == 1;
  });
  return found == node.loops.end() ? nullptr : &*found;
}

class Halver {
 public:
  // `moved` are the buffers in half-words, `single` those with one word to a stick: its half-words are a row of their own.
  Halver(DeviceGraph& graph, std::set<BufferId> moved, std::set<BufferId> single)
      : graph_(graph), moved_(std::move(moved)), single_(std::move(single)) {}

  void run() {
    std::vector<DeviceNode> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (DeviceNode& node : nodes) {
      if (!moved_.contains(node.op.output.buffer)) {
        graph_.nodes.push_back(node);
        continue;
      }
      for (Access& input : node.op.inputs) {
        if (const auto known = collected_.find(input.buffer); known != collected_.end())
          input.buffer = known->second;
      }
      node.op.output.buffer = collected(node.op.output.buffer);
      rewrite(node);
    }
    for (const auto& [result, parts] : collected_) deliver(result, parts, nodes.back());
  }

 private:
  void rewrite(const DeviceNode& node) {
    const DeviceOp& op = node.op;
    if (graph_.buffers[static_cast<size_t>(op.inputs[0].buffer)].fill) return fill(node, op);
    const Loop *in = walks_neighbours(node, op.inputs[0].index),
               *out = walks_neighbours(node, op.output.index);
    if (word_by_word(op)) {
      copy(node, with(node.loops, half()), op, with_half(op.inputs[0]), with_half(op.output));
    } else if (in != nullptr && in == out) {
      copy(node, with_extent(node.loops, *in), op, words_and(op.inputs[0], in), words_and(op.output, out));
    } else if (in != nullptr && out != nullptr && op.indices.empty()) {
      restickify(node, op, *in, *out);
    } else if (gathers_neighbours(node, op, out)) {
      gather(node, op, *out);
    } else {
      std::vector<Loop> loops = node.loops;
      loops.push_back(half());
      copy(node, std::move(loops), op, with_half(op.inputs[0]), with_half(op.output));
    }
  }

  // Between buffers of this graph any layout may be chosen: one that needs no restickify.
  bool word_by_word(const DeviceOp& op) const {
    const BufferId from = op.inputs[0].buffer, to = op.output.buffer;
    return single_.contains(from) || single_.contains(to) ||
           (graph_.is_local(from) && graph_.is_local(to) && op.indices.empty());
  }

  // Results are put together in a buffer that may have any layout, and read there: they are delivered last.
  BufferId collected(BufferId target) {
    if (!graph_.is_result(target) || graph_.buffers[static_cast<size_t>(target)].is_input) return target;
    const auto known = collected_.find(target);
    if (known != collected_.end()) return known->second;
    Buffer parts = graph_.buffers[static_cast<size_t>(target)];
    parts.name += "_parts";
    parts.layout.reset();
    return collected_[target] = graph_.add_buffer(std::move(parts));
  }

  void deliver(BufferId result, BufferId parts, const DeviceNode& like) {
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(result)];
    std::vector<Loop> loops;
    Expr index;
    for (size_t d = 0; d < buffer.size.size(); ++d) {
      const bool half_words = d + 1 == buffer.size.size();
      // Both half-words of neighbours are neighbours: one loop.
      if (half_words && !loops.empty() && buffer.stride[d - 1] == 2) {
        index = index + -1 * Expr::symbol(loops.back().name);
        loops.back().extent *= 2;
        continue;
      }
      loops.push_back({.name = fmt::format("p{}", d), .extent = buffer.size[d]});
      index = index + buffer.stride[d] * Expr::symbol(loops.back().name);
    }
    copy(like, loops, {.op = OpId::identity}, {parts, index}, {result, index});
  }

  void fill(const DeviceNode& node, const DeviceOp& op) {
    std::vector<Loop> loops = node.loops;
    loops.push_back(half());
    copy(node, std::move(loops), op, op.inputs[0], with_half(op.output));
  }

  // y[.. b] = x[.. a]: both half-words of all a become rows of b, then both half-words of all b rows of a.
  void restickify(const DeviceNode& node, const DeviceOp& op, const Loop& a, const Loop& b) {
    std::vector<Loop> others = without(without(node.loops, a), b);
    const Loop both_a{.name = a.name, .extent = 2 * a.extent}, both_b{.name = b.name, .extent = 2 * b.extent};
    const Access rows_of_b = local("restickified", with(with(others, both_a), b));
    copy(node, with(with(others, both_a), b), op, words_and(op.inputs[0], &a), rows_of_b);
    const std::vector<Loop> apart = with(with(with(others, b), half()), a);
    const Access rows_of_a = local("half_words", apart);
    copy(node, apart, op, reread(rows_of_b, with(with(with(others, a), half()), b)), rows_of_a);
    const std::vector<Loop> last = with(with(others, both_b), a);
    copy(node, last, op, reread(rows_of_a, last), words_and(op.output, &b));
  }

  // y[r, j] = x[r, i[j]]: the positions of x become rows, those meant are picked, and become positions again.
  void gather(const DeviceNode& node, const DeviceOp& op, const Loop& out) {
    const Loop row = *gathered_rows(node, op, out);
    const Expr position = indirection(op.inputs[0].index);
    const Buffer& from = graph_.buffers[static_cast<size_t>(op.inputs[0].buffer)];
    const auto dim = std::find(from.stride.begin(), from.stride.end(), 2) - from.stride.begin();
    const Loop word{.name = "all", .extent = from.size[static_cast<size_t>(dim)]};
    const Loop all{.name = "all", .extent = 2 * word.extent};
    const std::vector<Loop> others = without(without(node.loops, row), out);
    DeviceOp plain = op;
    plain.indices.clear();
    const Access rows = reread(local("restickified", with(with(with(others, word), half()), row)),
                               with(with(others, all), row));
    const Expr start = op.inputs[0].index + -1 * position;
    copy(node, with(with(others, all), row), plain, {op.inputs[0].buffer, 2 * start + Expr::symbol(all.name)},
         rows);
    const std::vector<Loop> picked_loops = with(with(with(others, out), half()), row);
    const Access picked = local("picked", picked_loops);
    Access source = reread(rows, with(with(others, all), row));
    source.index = source.index + -source.index.coefficient(all.name) * Expr::symbol(all.name) +
                   row.extent * (2 * position + Expr::symbol(half().name));
    copy(node, picked_loops, op, source, picked);
    const std::vector<Loop> last = with(with(others, {.name = out.name, .extent = 2 * out.extent}), row);
    copy(node, last, plain, reread(picked, last), words_and(op.output, &out));
  }

  static Expr indirection(const Expr& index) {
    for (const ExprTerm& term : index.terms()) {
      if (term.kind == AtomKind::kIndirect) return Expr::indirect(term.name);
    }
    return {};
  }

  // The longest loop that x is walked by besides the positions it is read at.
  static const Loop* gathered_rows(const DeviceNode& node, const DeviceOp& op, const Loop& out) {
    const Loop* longest = nullptr;
    for (const Loop& loop : node.loops) {
      const bool walks =
          loop.name != out.name && loop.extent > 1 && op.inputs[0].index.coefficient(loop.name) != 0;
      if (walks && (longest == nullptr || loop.extent > longest->extent)) longest = &loop;
    }
    return longest;
  }

  bool gathers_neighbours(const DeviceNode& node, const DeviceOp& op, const Loop* out) const {
    if (out == nullptr || op.indices.size() != 1 || !op.output.index.index_tensors().empty()) return false;
    const std::vector<ExprTerm>& terms = op.inputs[0].index.terms();
    const bool neighbours = std::any_of(terms.begin(), terms.end(), [](const ExprTerm& term) {
      return term.kind == AtomKind::kIndirect && term.coefficient == 1;
    });
    const bool by_out = op.indices[0].second.index.symbols() == std::set<std::string>{out->name};
    return neighbours && by_out && gathered_rows(node, op, *out) != nullptr;
  }

  void copy(const DeviceNode& like, std::vector<Loop> loops, const DeviceOp& op, const Access& from,
            const Access& to) {
    DeviceOp moved = op;
    moved.inputs = {from};
    moved.output = to;
    DeviceNode node{{.name = graph_.buffers[static_cast<size_t>(to.buffer)].name, .loops = std::move(loops)},
                    std::move(moved)};
    node.aten = like.aten;
    node.source = like.source;
    graph_.nodes.push_back(std::move(node));
  }

  // Both half-words of every position of a loop, which has twice its extent.
  static Access words_and(const Access& access, const Loop* loop) {
    return {access.buffer, 2 * access.index + -1 * Expr::symbol(loop->name)};
  }
  static Access with_half(const Access& access) {
    return {access.buffer, 2 * access.index + Expr::symbol(half().name)};
  }
  static Loop half() { return {.name = "half", .extent = 2}; }

  static std::vector<Loop> with_extent(std::vector<Loop> loops, const Loop& doubled) {
    for (Loop& loop : loops) loop.extent *= loop.name == doubled.name ? 2 : 1;
    return loops;
  }
  static std::vector<Loop> with(std::vector<Loop> loops, Loop one) {
    loops.push_back(std::move(one));
    return loops;
  }
  static std::vector<Loop> without(std::vector<Loop> loops, const Loop& one) {
    std::erase_if(loops, [&](const Loop& loop) { return loop.name == one.name; });
    return loops;
  }

  static Access reread(const Access& access, const std::vector<Loop>& loops) {
    Expr index;
    int64_t stride = 1;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      index = index + stride * Expr::symbol(loop->name);
      stride *= loop->extent;
    }
    return {access.buffer, index};
  }

  // Row-major over the loops.
  Access local(const std::string& name, const std::vector<Loop>& loops) {
    Buffer buffer{.name = name, .dtype = HostType::kFloat16};
    for (const Loop& loop : loops) buffer.size.push_back(loop.extent);
    buffer.stride = contiguous_strides(buffer.size);
    return reread({graph_.add_buffer(std::move(buffer)), Expr()}, loops);
  }

  DeviceGraph& graph_;
  std::set<BufferId> moved_, single_;
  std::map<BufferId, BufferId> collected_;  // by result
};

// The memory of an argument keeps the name its caller knows; the copies see it under a second one.
void name_twice(DeviceGraph& half_words, const DeviceGraph& words, BufferId id, const DeviceLayout& layout) {
  Buffer second = half_words.buffers[static_cast<size_t>(id)];
  second.name += "_half_words";
  second.is_input = false;
  second.memory_of = id;
  half_words.buffers[static_cast<size_t>(id)] = words.buffers[static_cast<size_t>(id)];
  half_words.buffers[static_cast<size_t>(id)].layout = layout;
  const BufferId other = half_words.add_buffer(std::move(second));
  for (DeviceNode& node : half_words.nodes) {
    DeviceOp& op = node.op;
    for (Access& input : op.inputs) input.buffer = input.buffer == id ? other : input.buffer;
    op.output.buffer = op.output.buffer == id ? other : op.output.buffer;
  }
}

}  // namespace

Result<DeviceLayout> word_layout(const Buffer& buffer) {
  if (buffer.layout) return *buffer.layout;
  return DeviceLayout::standard(buffer.size, info_of(buffer.dtype).device_format);
}

std::optional<DeviceGraph> in_half_words(const DeviceGraph& graph) {
  std::set<BufferId> moved, others;
  for (const DeviceNode& node : graph.nodes) {
    std::set<BufferId>& touched = is_move(graph, node) ? moved : others;
    touched.insert(node.op.output.buffer);
    for (const Access& input : node.op.inputs) touched.insert(input.buffer);
  }
  const auto is_moved = [&](BufferId id) { return moved.contains(id); };
  if (moved.empty() || std::any_of(others.begin(), others.end(), is_moved)) return std::nullopt;
  DeviceGraph half_words = graph;
  std::map<BufferId, DeviceLayout> arguments;
  std::set<BufferId> single;
  for (const BufferId id : moved) {
    Buffer& buffer = half_words.buffers[static_cast<size_t>(id)];
    if (!graph.is_local(id) && !buffer.fill) {
      const Result<DeviceLayout> words = word_layout(buffer);
      if (!words.ok()) return std::nullopt;
      if (words.value().stride_map.back() < 0) single.insert(id);
      buffer.layout = layout_in_half_words(words.value());
      if (!buffer.layout) return std::nullopt;
      arguments.emplace(id, words.value());
    }
    buffer.dtype = HostType::kFloat16;
    buffer.offset *= 2;
    buffer.storage *= 2;
    if (buffer.fill && buffer.size.empty()) continue;  // zero is zero, in half-words too
    for (int64_t& stride : buffer.stride) stride *= 2;
    buffer.size.push_back(2);
    buffer.stride.push_back(1);
  }
  // An index that is moved as well as read through is no longer one.
  for (const DeviceNode& node : graph.nodes) {
    for (const auto& [name, access] : node.op.indices) {
      if (moved.contains(access.buffer)) return std::nullopt;
    }
  }
  Halver(half_words, std::move(moved), std::move(single)).run();
  for (const auto& [id, layout] : arguments) name_twice(half_words, graph, id, layout);
  return half_words;
}

}  // namespace spyre
