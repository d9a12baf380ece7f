#include "spyre/passes/plan/plan_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "spyre/arch/machine.h"

namespace spyre {
namespace {

struct Life {
  int first = -1, last = -1;
};

std::vector<Life> lives_of(const DeviceGraph& graph) {
  std::vector<Life> lives(graph.buffers.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto touch = [&](BufferId id) {
      Life& life = lives[static_cast<size_t>(graph.owner(id))];
      if (life.first < 0) life.first = static_cast<int>(n);
      life.last = static_cast<int>(n);
    };
    for_each_access(graph.nodes[n].op, [&](const Access& access) { touch(access.buffer); });
  }
  return lives;
}

// Bytes taken right now, by offset; gaps between them are free.
class Pool {
 public:
  int64_t place(int64_t bytes, int until) {
    int64_t offset = 0;
    for (const auto& [start, block] : blocks_) {
      if (start - offset >= bytes) break;
      offset = start + block.bytes;
    }
    blocks_[offset] = {bytes, until};
    return offset;
  }

  void free_before(int node) {
    std::erase_if(blocks_, [&](const auto& entry) { return entry.second.until < node; });
  }

 private:
  struct Block {
    int64_t bytes;
    int until;
  };
  std::map<int64_t, Block> blocks_;
};

Error no_room(const DeviceGraph& graph, const DeviceNode& node, int64_t bytes) {
  return Error(ErrorKind::kUnsupported,
               fmt::format("plan-pool: node '{}': the intermediate results of '{}' take {} bytes of device "
                           "memory here, "
                           "allowed are {}",
                           node.name, graph.name, bytes, spyre_card().largest_pool().count()))
      .about(origin_of(node));
}

}  // namespace

Status plan_pool(DeviceGraph& graph) {
  const std::vector<Life> lives = lives_of(graph);
  Pool pool;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto id = static_cast<size_t>(graph.owner(graph.nodes[n].op.output.buffer));
    pool.free_before(static_cast<int>(n));
    Buffer& buffer = graph.buffers[id];
    if (buffer.place || lives[id].first != static_cast<int>(n) || !graph.is_local(static_cast<BufferId>(id)))
      continue;
    SPYRE_ASSIGN_OR_RETURN(const Bytes bytes, buffer.layout->byte_size());
    buffer.place = BufferPlace{BufferPlace::Kind::kPool, pool.place(bytes.count(), lives[id].last)};
    const int64_t end = buffer.place->offset + bytes.count();
    if (end > spyre_card().largest_pool().count()) return no_room(graph, graph.nodes[n], end);
  }
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    const BufferId owner = graph.owner(static_cast<BufferId>(id));
    graph.buffers[id].place = graph.buffers[static_cast<size_t>(owner)].place;
  }
  return Status();
}

}  // namespace spyre
