#pragma once

#include <string>
#include <vector>

#include "spyre/base/units.h"
#include "spyre/passes/scratchpad/core_view.h"
#include "spyre/passes/scratchpad/graph_access.h"

namespace spyre {

/// What it would mean to keep one buffer in LX.
///
/// A buffer may live there when every node that touches it finds, in the scratchpad of each core, exactly the
/// part that core works on; scratchpads are private. A graph input may live there as a copy, made before its
/// first reader by a node that is divided as that reader is.
struct Residency {
  std::string barred;  ///< why it must stay in device memory; empty: it may live in LX
  bool clone = false;  ///< a graph input: its copy is meant
  CoreView view;       ///< of every node that touches it
  Bytes per_core;      ///< what each core holds; of a barred buffer all of it
  Bytes saves;         ///< device memory traffic of all cores that goes away
};

struct ResidencyRules {
  bool clone_inputs = true;
};

/// By buffer. Reasons, the first that applies:
///
///   not touched | constant | graph output | mutation target | graph input (read once, or no clones)
///   index tensor or indirectly accessed     where it is touched is known only at run time
///   read by restickify                      turning sticks reads across cores
///   padding left by restickify              a turned dimension ends inside a stick, whose rest stays as it
///   was partial sums                            cores that split a reduction hold parts of each result
///   partial or offset access                one LX address stands for the whole part of a core
///   core division mismatch                  two nodes disagree about who holds what
///   no consumer                             nothing would be saved
std::vector<Residency> residencies(const Graph& graph, const GraphAccess& access,
                                   const ResidencyRules& rules);

/// Buffers whose slot the child may take over, in operand order: its writer reads them last, element for
/// element as it writes the child, in an operation that may write over its input.
std::vector<BufferId> in_place_parents(const Graph& graph, const GraphAccess& access,
                                       const std::vector<Residency>& residencies, BufferId child);

}  // namespace spyre
