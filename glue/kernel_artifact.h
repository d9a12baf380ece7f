#pragma once

#include <map>
#include <string>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/driver/compile.h"

namespace spyre::glue {

/// What running a kernel takes, whether it was compiled here or read back: its files, and what is passed.
///
/// Everything but the names of the arguments, and which of their sizes are capacities, is in the bundle itself: `launch_spec.json` says how the caller's tensors lie,
/// which of them are written, and how large a pool the caller brings.
struct KernelArtifact {
  std::string name;
  Bundle bundle;
  std::vector<KernelArgument> arguments;    ///< inputs, then outputs; constants may follow
  std::vector<std::string> written_inputs;  ///< inputs that the kernel also writes
  Bytes caller_pool;                        ///< as in CompiledGraph
};

/// Takes the bundle out of what the compiler made.
KernelArtifact artifact_of(CompiledGraph& compiled);

/// For arguments whose sizes change from call to call, by name: the most a call may have along each dimension, 0 along
/// those that do not change (KernelArgument::most).
using ArgumentBounds = std::map<std::string, std::vector<int64_t>>;

/// The same from the files of a bundle; no pass of the compiler runs. Names are those of the graph, in launch order.
///
/// Refused: files without a launch specification, one that has another number of arguments, and an argument whose type,
/// shape or layout is not said whole.
Result<KernelArtifact> read_artifact(Bundle bundle, const std::vector<std::string>& inputs,
                                     const std::vector<std::string>& outputs, const ArgumentBounds& bounds);

}  // namespace spyre::glue
