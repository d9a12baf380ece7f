#pragma once

#include "spyre/solve/problem.h"

namespace spyre::solve {

/// Bytes of all buffers live at the busiest step, in-place pairs counted twice where they overlap. A capacity
/// below this spills something, unless hand-overs make up for it.
Bytes peak_live_bytes(const Problem& problem);

/// Off-chip bytes that no placement can avoid: `bytes_at_stake` less the bound of the fluid relaxation
/// (fluid.h), which ignores that a buffer is whole and lies in one piece. 0 when loads alone allow
/// everything. Printed beside every result: the gap between the two is what a better solver could still gain.
Bytes unavoidable_off_chip(const Problem& problem);

}  // namespace spyre::solve
