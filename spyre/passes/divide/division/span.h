#pragma once

#include <optional>

#include "spyre/passes/divide/division/axis_facts.h"

namespace spyre {

/// The stretch of device memory of one tensor that one core reaches, and what decides it.
///
/// Walk the device dimensions from the outermost in, the stick excepted. The first one along which a core
/// visits more than one position decides: everything below it lies inside the stretch, split or not.
///
///     host [4096, 65536] fp16 -> device [1024, 4096, 64] = [floor(c1/64), c0, Mod(c1, 64)]
///
///     {c1: 1}    1024 positions of 4096 * 64 * 2 bytes = 512 MiB
///     {c1: 2}     512 positions                        = 256 MiB: fits, the limit is inclusive
///     {c0: 32}   still 1024 positions of c1 sticks     = 512 MiB: cutting the rows does not help
struct Span {
  Bytes bytes;                      ///< one element when no dimension has two positions
  std::optional<size_t> dimension;  ///< index of the deciding device dimension
};

Span per_core_span(const DivisionTensor& tensor, const std::vector<AxisFacts>& facts, const Splits& splits);

/// True when one core reaches its whole part of the tensor, or the tensor is exempt.
bool span_fits(const DivisionProblem& problem, const DivisionTensor& tensor,
               const std::vector<AxisFacts>& facts, const Splits& splits);

/// Fails on the first tensor, in operand order, whose span is over the limit; the message says which axes
/// decide, how they may be cut, and the smallest padding or tiling that would help.
Status check_spans(const DivisionProblem& problem, const std::vector<AxisFacts>& facts, const Splits& splits);

}  // namespace spyre
