#pragma once

#include <vector>

#include "spyre/graph/device_graph.h"

namespace spyre {

/// Which nodes must run before which. A node waits for an earlier one when both touch a buffer and one of
/// them writes it: a value is read after it is made, a buffer is overwritten after it was read, and pieces of
/// one buffer keep their order. Inputs may share memory nobody here knows of, so a node that stores into an
/// input (a mutation, which the caller sees) waits for, and is waited for by, every node that touches any
/// input.
struct Dependences {
  std::vector<std::vector<size_t>> before,
      after;  ///< by node: those it waits for, and those that wait for it
};

Dependences dependences_of(const DeviceGraph& graph);

/// Whether an order, the nodes in the sequence they run, keeps all of them.
bool keeps(const Dependences& dependences, const std::vector<size_t>& order);

}  // namespace spyre
