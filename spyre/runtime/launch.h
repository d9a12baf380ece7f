#pragma once

#include <vector>

#include "spyre/runtime/job_plan.h"
#include "spyre/runtime/transfer.h"

namespace spyre {

/// One tensor argument: its memory, and its sizes where the kernel takes extents from them. A null memory is
/// a tensor without elements. The address a kernel gets is that of the whole allocation: where in it a view
/// begins is compiled into the kernel.
struct LaunchTensor {
  MemoryRef memory;
  std::vector<int64_t> shape;
};

/// Runs a prepared kernel in the order of a stream.
///
///     HostCompute     addresses and extents of the tensors -> host buffer
///     H2D             host buffer -> correction part of the program region
///     Compute         decode the image in the region (once), read the parameters in front of it, execute
///
/// A kernel of several bundles goes through them in order. Between two of them other launches may have the
/// cores, and what is in the scratchpads then is theirs, unless the first is non-terminal (CoreTurn, card.h).
///
/// Tensors are passed by arg_index, the caller's pool (if the kernel wants one) first; constants are the
/// plan's own and not among them. Refused here, before anything is queued: a wrong number of tensors, one of
/// another card, a stream of another card, an extent that the kernel was not compiled for, freed memory. A
/// queued launch keeps its plan and tensors alive.
///
/// While it runs the program reaches the tensors, the pool and the scratchpads, nothing else. Where it strays
/// (or is no program at all) the launch ends with kDeviceFault, which names core, address and instruction and
/// poisons the stream, whether or not the caller waits; other streams, cards and data are untouched.
///
/// kYes: runs on the calling thread when the stream is idle. A bug of the emulator found on the way is then
/// thrown as InternalError, also out of work that ran elsewhere.
Status launch(const JobPlanRef& plan, std::vector<LaunchTensor> tensors, const StreamRef& stream,
              Blocking blocking);

}  // namespace spyre
