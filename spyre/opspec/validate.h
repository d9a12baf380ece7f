#pragma once

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/opspec/opspec.h"

/// What a kernel must satisfy before any code generator sees it. Each message names the op, the tensor, what
/// was found and what is allowed. Rules that need padded extents or strides belong to the code generator.
///
/// Names     op function in the table; symbols, tensor and kernel names are words; symbols unique
/// Counts    as many operands as the op takes, one output and it is last, at most eight tensors
/// Formats   allowed by the table, per side; index tensors hold 32-bit integers
/// Shapes    as many coordinates as sizes; the last size is one stick; only known symbols
/// Cores     product of splits fits the card; every core has its own combination of slices
/// Places    declared argument, aligned address inside LX, aligned offset inside the pool
/// Loops     one tiled_symbols entry per enclosing loop; LX tensors do not advance
/// Constants exactly those of the table, finite
namespace spyre {

Status validate(const Kernel& kernel, const Machine& machine = spyre_card());

/// Names of index tensors that some coordinate of the op reads through.
std::set<std::string> index_tensor_names(const OpSpec& op);

}  // namespace spyre
