#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/program/device_program.h"

/// Reads `bundle.mlir`, the text that says which sdsc files run, in what order, with which addresses.
///
///     #map_0 = affine_map<(d0)[s0] -> (s0 + 512*d0)>
///     module {
///       func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>) {
///         %arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr
///                  : !sdscbundle.input_arg<index> -> index
///         %c0 = arith.constant 0 : index
///         %c1 = arith.constant 1 : index
///         %n = arith.constant 4 : index
///         scf.for %i = %c0 to %n step %c1 {
///           %a = affine.apply #map_0(%i)[%arg_0]
///           sdscbundle.sdsc_execute (%a) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1]}
///         }
///         return
///       }
///     }
///
/// This is the subset of MLIR that bundles use, no more: constants, sums, affine maps without division,
/// counted loops without carried values, executes. Values become linear forms over parameters, the pool and
/// loop counters as they are read, so nothing of the text remains to be interpreted at launch.
namespace spyre::program {

struct BundleText {
  std::vector<Parameter> parameters;
  int64_t pool_bytes = 0;
  int loop_count = 0;
  std::vector<std::string> files;  ///< distinct sdsc files in order of first use; Execute::op indexes it
  std::vector<Step> steps;
};

inline constexpr size_t kMaxBundleBytes = 16u << 20;
inline constexpr int kMaxLoopDepth = 16;
inline constexpr int64_t kMaxTripCount = int64_t{1} << 20;  ///< of one loop
inline constexpr int64_t kMaxExecutes = int64_t{1} << 22;   ///< of one launch, loops counted out

Result<BundleText> parse_bundle(std::string_view text, const std::string& file);

}  // namespace spyre::program
