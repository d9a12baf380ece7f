#include "spyre/passes/layout/stage_operands.h"

#include <algorithm>
#include <set>

namespace spyre {
namespace {

bool lies_as_fresh(const Buffer& buffer) {
  const auto usual = DeviceLayout::standard(buffer.size, buffer.layout->device_dtype);
  return buffer.offset == 0 && buffer.stride == contiguous_strides(buffer.size) && usual.ok() &&
         *buffer.layout == usual.value();
}

class OperandStager {
 public:
  explicit OperandStager(const DeviceGraph& graph)
      : inputs_(graph.buffers.size()),
        staged_{.computed = graph, .copied = {}, .shared = {}, .copies_first = true} {
    staged_.copied.name = graph.name;
  }

  std::optional<StagedGraph> run() {
    std::vector<BufferId> written;
    for (DeviceNode& node : staged_.computed.nodes) {
      const bool copies = node.op.op == OpId::identity && node.op.indices.empty();
      for (auto& [name, access] : node.op.indices) {
        if (is_odd(access, written)) stage(node, access);
      }
      for (Access& access : node.op.inputs) {
        if (!copies && is_odd(access, written)) stage(node, access);
      }
      written.push_back(staged_.computed.owner(node.op.output.buffer));
    }
    if (staged_.copied.nodes.empty()) return std::nullopt;
    return std::move(staged_);
  }

 private:
  // An input that lies otherwise than a fresh tensor, and that nothing has written so far.
  bool is_odd(const Access& access, const std::vector<BufferId>& written) const {
    const Buffer& buffer = staged_.computed.buffers[static_cast<size_t>(access.buffer)];
    return static_cast<size_t>(access.buffer) < inputs_ && buffer.is_input && !buffer.fill && buffer.layout &&
           buffer.memory_of < 0 && access.index.index_tensors().empty() && !lies_as_fresh(buffer) &&
           std::ranges::find(written, access.buffer) == written.end();
  }

  void stage(const DeviceNode& node, Access& access) {
    DeviceGraph& computed = staged_.computed;
    const Buffer& source = computed.buffers[static_cast<size_t>(access.buffer)];
    DeviceNode copy = node;
    copy.name = node.name + "_" + source.name + "_copied";
    const std::set<std::string> used = access.index.symbols();
    std::erase_if(copy.loops, [&](const Loop& loop) { return !used.contains(loop.name); });
    for (Loop& loop : copy.loops) loop.reduced = false;
    Buffer fresh{.name = copy.name, .dtype = source.dtype};
    for (const Loop& loop : copy.loops) fresh.size.push_back(loop.extent);
    fresh.stride = contiguous_strides(fresh.size);
    Result<DeviceLayout> layout = DeviceLayout::standard(fresh.size, source.layout->device_dtype);
    if (!layout.ok()) return;
    fresh.layout = std::move(layout).value();
    fresh.is_input = true;  // until the graphs are one again
    const Expr place = row_major(copy.loops);
    const BufferId from = share(access.buffer), made = computed.add_buffer(fresh);
    fresh.is_input = false;
    staged_.shared.push_back(made);
    const BufferId to = staged_.copied.add_buffer(std::move(fresh));
    copy.op = {.inputs = {{from, access.index}}, .output = {to, place}};
    staged_.copied.nodes.push_back(std::move(copy));
    staged_.copied.results.push_back(to);
    access = {made, place};
  }

  BufferId share(BufferId id) {
    const auto known = std::ranges::find(staged_.shared, id);
    if (known != staged_.shared.end()) return static_cast<BufferId>(known - staged_.shared.begin());
    staged_.shared.push_back(id);
    return staged_.copied.add_buffer(staged_.computed.buffers[static_cast<size_t>(id)]);
  }

  size_t inputs_;  // buffers of the graph that is cut
  StagedGraph staged_;
};

}  // namespace

std::optional<StagedGraph> stage_operands(const DeviceGraph& graph) {
  return OperandStager(graph).run();
}

}  // namespace spyre
