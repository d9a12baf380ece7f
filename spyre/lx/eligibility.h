#pragma once

#include <string>

#include "spyre/graph/device_graph.h"
#include "spyre/lx/graph_access.h"
#include "spyre/lx/moves.h"

/// What keeps a buffer in device memory however the work is divided. Reasons, the first that applies:
///
///   not touched | empty tensor | constant | no consumer        there is nothing to keep
///   mutation target | graph input | graph output               the caller's memory is where it must be; the last two only
///                                                              where no copy may be made, or nobody reads the result
///   index tensor or indirectly accessed                        where it is touched is known only at run time
///   two names                                                  nodes see its memory as different elements
///   restickified from interleaved lanes                        what a node with joined loops touches has no host index
///   padding left by restickify                                 a restickified dimension ends inside a stick
///   read by restickify                                         turning parts of sticks reads across cores
///   partial or offset access                                   one LX address stands for the whole part of a core
///
/// Empty: nothing does.
namespace spyre::lx {

std::string ineligible_buffer(const DeviceGraph& graph, const GraphAccess& access, MoveSet moves,
                              BufferId buffer);

/// What keeps one node from touching the buffer in LX. Of a writer that is a reason for the whole buffer; a reader may
/// read a copy in device memory instead.
std::string ineligible_touch(const DeviceGraph& graph, const GraphAccess& access, MoveSet moves,
                             const BufferTouch& touch);

}  // namespace spyre::lx
