#pragma once

#include <vector>

#include "spyre/graph/graph.h"
#include "spyre/passes/scratchpad/graph_access.h"

/// Copies of graph inputs in LX: one read from device memory, whatever the number of readers.
///
///     m = max x;  d = x - m      ->     x_lx = x;  m = max x_lx;  d = x_lx - m
namespace spyre {

struct PlannedClone {
  BufferId input = -1;
  size_t before = 0;  ///< the node it is made just before: the input's first reader
  Buffer buffer;      ///< the copy; laid out as the input, already placed
  Node node;  ///< the copying node, divided as the first reader; buffer ids are filled in on insertion
};

/// Needs a resident input (residency.h).
PlannedClone plan_clone(const Graph& graph, const GraphAccess& access, BufferId input, BufferPlace place);

/// Adds buffers and nodes, and lets every other node read the copies.
void insert_clones(Graph& graph, std::vector<PlannedClone> clones);

}  // namespace spyre
