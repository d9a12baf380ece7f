#include "spyre/passes/layout/whole_memory.h"

#include "spyre/layout/dense_tensor.h"

namespace spyre {

namespace {

// The next larger view of the same memory: all of its rows, then all of them as one.
std::optional<DenseTensor> larger_view(const Buffer& buffer) {
  if (!buffer.is_input || !buffer.layout || buffer.storage == 0) return std::nullopt;
  const std::optional<DenseTensor> rows = dense_tensor(*buffer.layout, buffer.storage);
  if (!rows || buffer.elements() < buffer.storage) return rows;
  if (buffer.size != rows->size || rows->size.size() < 2) return std::nullopt;
  return DenseTensor{.size = {buffer.storage}, .stride = {1}};
}

}  // namespace

std::optional<DeviceGraph> with_whole_memory(const DeviceGraph& graph) {
  DeviceGraph whole = graph;
  bool changed = false;
  for (Buffer& buffer : whole.buffers) {
    std::optional<DenseTensor> view = larger_view(buffer);
    if (!view) continue;
    buffer.size = std::move(view->size);
    buffer.stride = std::move(view->stride);
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
