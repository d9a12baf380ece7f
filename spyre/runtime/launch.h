#pragma once

#include <span>
#include <vector>

#include "spyre/runtime/job_plan.h"
#include "spyre/runtime/transfer.h"

namespace spyre {

/// One tensor argument: its memory, and its sizes where the kernel takes extents from them. The address a kernel gets is that of the whole allocation: where in it a view
/// begins is compiled into the kernel.
struct LaunchTensor {
  MemoryRef memory;
  std::vector<int64_t> shape;
};

/// What one parameter of a kernel is at this launch, said by the caller: the address of a tensor, or one of
/// its extents (`value`, where that is not negative).
struct SymbolicArg {
  enum class Kind { kAddress, kDimension };
  Kind kind = Kind::kAddress;
  int64_t tensor_id = 0;   ///< position among the launch tensors
  int64_t dim_index = -1;  ///< of the extent in that tensor's shape
  int64_t value = -1;
};

/// The values that the parameters get, in order. Refused: a tensor or a dimension that does not exist.
Result<std::vector<int64_t>> resolve(std::span<const SymbolicArg> args,
                                     std::span<const LaunchTensor> tensors);

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
/// another card or without memory, a stream of another card, an extent that the kernel was not compiled for,
/// freed memory. A queued launch keeps its plan and tensors alive.
///
/// While it runs the program reaches the tensors, the pool and the scratchpads, nothing else. Where it strays
/// (or is no program at all) the launch ends with kDeviceFault, which names core, address and instruction and
/// poisons the stream, whether or not the caller waits; other streams, cards and data are untouched.
///
/// A plan may also move bytes to the host, from its region or from the tensors, and compute nothing.
///
/// `symbolic`, where given, is what the parameters are, in signature order, instead of what the plan says; as
/// many as the plan has.
///
/// kYes: runs on the calling thread when the stream is idle. A bug of the emulator found on the way is then
/// thrown as InternalError, also out of work that ran elsewhere.
Status launch(const JobPlanRef& plan, std::vector<LaunchTensor> tensors, const StreamRef& stream,
              Blocking blocking, std::vector<SymbolicArg> symbolic = {});

}  // namespace spyre
