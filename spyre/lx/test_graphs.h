#pragma once

#include <string_view>

#include "spyre/graph/graph.h"
#include "spyre/lx/test_programs.h"

/// Graphs as they are when planning starts, without the passes that make them so.
namespace spyre::test {

/// A graph of card operations, each loop divided as the text says, with standard layouts.
inline Graph laid_out(std::string_view text) {
  Graph graph = parse_graph(text).value();
  for (Buffer& buffer : graph.buffers) {
    if (!buffer.layout)
      buffer.layout = DeviceLayout::standard(buffer.size, info_of(buffer.dtype).device_format).value();
  }
  return graph;
}

inline BufferId buffer_of(const Graph& graph, std::string_view name) {
  return graph.find(name).value();
}

}  // namespace spyre::test
