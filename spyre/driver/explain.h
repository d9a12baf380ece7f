#pragma once

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"
#include "spyre/driver/compile.h"

namespace spyre {

/// Everything that a reader of a scratchpad plan may ask, as plain facts (the pages of report/ show them):
///
///     graph, cores            what was planned
///     capacity, peak          bytes of every core's LX: to plan, and used
///     saved, at_stake, bound  device memory traffic: avoided, avoidable in an endless LX, and the most that
///     any
///                             placement in this LX could avoid
///     moved, compulsory       device memory traffic that is left, and what is used of every input and
///     result, once solver, optimal, work   who placed, whether no better placement exists, in how many units
///     of work cost                    the modelled time in us, and its parts joint                   with
///     co-optimization: the time of separate planning, and plans looked at refused_hints           wished
///     splits that could not be followed: `{node, loop, split, reason}` order                   where
///     something found no room in program order: orders looked at, nodes moved,
///                             and the traffic before and after
///     nodes                   `{name, op}` by time
///     buffers                 place, address, lifetime, bytes per core, what it `saves`, what it still
///     `moves`,
///                             who makes and who reads it, and a remark; off chip: the `reason`
///
/// Needs a graph that was compiled with LX planning. Refused: one that was not.
Result<Json> explain(const CompiledGraph& compiled);

/// Device memory traffic that no plan of this kernel avoids, `compulsory` above; with or without LX planning.
Result<Bytes> compulsory_traffic(const CompiledGraph& compiled);

}  // namespace spyre
