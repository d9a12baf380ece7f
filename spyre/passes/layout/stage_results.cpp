#include "spyre/passes/layout/stage_results.h"

#include <algorithm>
#include <set>

namespace spyre {
namespace {

// Reads and writes that may change places: nothing is read after it was written, and no position of a write is read.
bool may_write_last(const DeviceGraph& graph) {
  std::set<BufferId> written;
  for (const DeviceNode& node : graph.nodes) {
    const DeviceOp& op = node.op;
    bool fine = op.output.index.index_tensors().empty();
    for_each_read(op, [&](const Access& access) { fine &= !written.contains(graph.owner(access.buffer)); });
    if (!fine) return false;
    if (graph.is_given(op.output.buffer)) written.insert(graph.owner(op.output.buffer));
  }
  return true;
}

// What a node writes, as a fresh tensor lies. None where that has another format than the target.
std::optional<Buffer> fresh_result(const Buffer& target, const std::vector<Loop>& loops) {
  Buffer fresh{.name = target.name + "_staged", .dtype = target.dtype};
  for (const Loop& loop : loops) fresh.size.push_back(loop.extent);
  fresh.stride = contiguous_strides(fresh.size);
  const DataFormat format = info_of(target.dtype).device_format;
  Result<DeviceLayout> layout = DeviceLayout::standard(fresh.size, format);
  if (!layout.ok() || (target.layout && target.layout->device_dtype != format)) return std::nullopt;
  fresh.layout = std::move(layout).value();
  return fresh;
}

class Stager {
 public:
  explicit Stager(const DeviceGraph& graph) : staged_{.computed = graph, .copied = {}, .shared = {}} {
    staged_.copied.name = graph.name;
    std::erase_if(staged_.computed.results, [&](BufferId id) { return graph.is_given(id); });
  }

  std::optional<StagedGraph> run() {
    std::vector<DeviceNode> nodes = std::move(staged_.computed.nodes);
    staged_.computed.nodes.clear();
    for (DeviceNode& node : nodes) {
      const bool staged = staged_.computed.is_given(node.op.output.buffer);
      if (staged && !stage(node)) return std::nullopt;
      if (!staged) staged_.computed.nodes.push_back(std::move(node));
    }
    return std::move(staged_);
  }

 private:
  // The result may lie in any way, as pairs of sticks or one element to a stick, and its copy as a fresh tensor does.
  bool stage(DeviceNode& node) {
    DeviceGraph& computed = staged_.computed;
    const Access target = node.op.output;
    DeviceNode settled = node;
    std::erase_if(settled.loops, [](const Loop& loop) { return loop.reduced; });
    std::optional<Buffer> fresh =
        fresh_result(computed.buffers[static_cast<size_t>(target.buffer)], settled.loops);
    if (!fresh) return false;
    Buffer free = *fresh;
    free.name = node.name + "_computed";
    free.layout.reset();
    const Expr place = row_major(settled.loops);
    node.op.output = {computed.add_buffer(std::move(free)), place};
    const BufferId result = computed.add_buffer(std::move(*fresh));
    computed.results.push_back(result);
    settled.name = computed.buffers[static_cast<size_t>(result)].name;
    settled.op = {.inputs = {node.op.output}, .output = {result, place}};
    DeviceNode copy = settled;
    copy.name = node.name + "_written";
    const BufferId from = share(result), to = share(target.buffer);
    copy.op = {.inputs = {{from, place}}, .output = {to, target.index}};
    computed.nodes.push_back(std::move(node));
    computed.nodes.push_back(std::move(settled));
    staged_.copied.nodes.push_back(std::move(copy));
    if (!staged_.copied.is_result(to)) staged_.copied.results.push_back(to);
    return true;
  }

  // A buffer of the first graph is an input of the second.
  BufferId share(BufferId id) {
    const auto known = std::find(staged_.shared.begin(), staged_.shared.end(), id);
    if (known != staged_.shared.end()) return static_cast<BufferId>(known - staged_.shared.begin());
    Buffer buffer = staged_.computed.buffers[static_cast<size_t>(id)];
    buffer.is_input = true;
    staged_.shared.push_back(id);
    return staged_.copied.add_buffer(std::move(buffer));
  }

  StagedGraph staged_;
};

}  // namespace

std::optional<StagedGraph> stage_results(const DeviceGraph& graph) {
  const bool computes = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const DeviceNode& node) {
    const bool copies = node.op.op == OpId::identity && node.op.indices.empty();
    return graph.is_given(node.op.output.buffer) && !copies;
  });
  if (!computes || !may_write_last(graph)) return std::nullopt;
  return Stager(graph).run();
}

DeviceGraph joined(const DeviceGraph& graph, StagedGraph staged) {
  DeviceGraph whole = std::move(staged.computed);
  whole.results = graph.results;
  std::vector<BufferId> known = staged.shared;
  // What the copies made was an input of what is computed.
  for (size_t i = 0; staged.copies_first && i < known.size(); ++i) {
    whole.buffers[static_cast<size_t>(known[i])].is_input = staged.copied.buffers[i].is_input;
  }
  for (size_t id = known.size(); id < staged.copied.buffers.size(); ++id) {
    Buffer buffer = std::move(staged.copied.buffers[id]);
    if (buffer.memory_of >= 0) buffer.memory_of = known[static_cast<size_t>(buffer.memory_of)];
    known.push_back(whole.add_buffer(std::move(buffer)));
  }
  for (DeviceNode& node : staged.copied.nodes) {
    for_each_access(node.op,
                    [&](Access& access) { access.buffer = known[static_cast<size_t>(access.buffer)]; });
  }
  auto at = staged.copies_first ? whole.nodes.begin() : whole.nodes.end();
  whole.nodes.insert(at, std::move_iterator(staged.copied.nodes.begin()),
                     std::move_iterator(staged.copied.nodes.end()));
  return whole;
}

}  // namespace spyre
