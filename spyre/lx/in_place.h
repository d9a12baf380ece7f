#pragma once

#include "spyre/lx/analysis.h"
#include "spyre/lx/residency.h"

/// When a result may lie where an operand lay.
namespace spyre::lx {

/// Whether the writer of the child reads the parent, element for element as it writes the child and on the
/// same cores, in an operation that may write over its input.
bool same_mapping(const Analysis& analysis, const Holding& child, const Holding& parent);

/// Whether the child may take over the slot of the parent: same mapping, and nobody reads the parent there
/// later.
bool may_take_over(const Analysis& analysis, const Holding& child, const Holding& parent);

}  // namespace spyre::lx
