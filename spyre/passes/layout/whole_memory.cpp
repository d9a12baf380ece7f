#include "spyre/passes/layout/whole_memory.h"

#include "spyre/layout/dense_tensor.h"

namespace spyre {

std::optional<DeviceGraph> with_whole_memory(const DeviceGraph& graph) {
  DeviceGraph whole = graph;
  bool changed = false;
  for (Buffer& buffer : whole.buffers) {
    const bool part = buffer.is_input && buffer.layout && buffer.elements() < buffer.storage;
    if (!part) continue;
    std::optional<DenseTensor> memory = dense_tensor(*buffer.layout, buffer.storage);
    if (!memory) continue;
    buffer.size = std::move(memory->size);
    buffer.stride = std::move(memory->stride);
    buffer.offset = 0;
    changed = true;
  }
  return changed ? std::optional(std::move(whole)) : std::nullopt;
}

void see_in_part(DeviceGraph& whole, const DeviceGraph& graph) {
  for (size_t id = 0; id < graph.buffers.size(); ++id) {
    const Buffer& argument = graph.buffers[id];
    if (!argument.is_input) continue;
    Buffer& seen = whole.buffers[id];
    seen.size = argument.size;
    seen.stride = argument.stride;
    seen.offset = argument.offset;
  }
}

}  // namespace spyre
