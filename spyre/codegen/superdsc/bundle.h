#pragma once

#include <map>
#include <string>
#include <vector>

#include "spyre/arch/machine.h"
#include "spyre/base/result.h"
#include "spyre/opspec/opspec.h"

/// The artifacts of one kernel, as named texts. Equal kernels give equal bytes.
///
///     bundle.mlir                      what runs in which order, with which addresses
///     sdsc_0.json ... sdsc_K.json      one device operation each; structurally equal ops share a file
///     symbol_kinds.json                what each parameter of the bundle is, in signature order
///     spyreCodeDir/launch_spec.json    what the caller must pass
///     spyreCodeDir/spyrecode.json      how the runtime prepares and runs the program
///     spyreCodeDir/init_binary.bin     the program image
///
/// A kernel cut into several bundles has bundle.mlir, its sdsc files, symbol_kinds.json and launch_spec.json
/// once per bundle, in bundle_0/, bundle_1/, ...; spyreCodeDir is one: its job runs them all in order.
///
/// docs/spec/superdsc.md walks through an example.
namespace spyre {

/// One bundle of a kernel that is cut into several.
struct BundlePart {
  size_t items = 0;           ///< of the kernel's body
  bool non_terminal = false;  ///< it leaves something in LX for a later one
};

struct BundleOptions {
  Machine machine = spyre_card();
  /// The caller passes the pool as launch argument 0 instead of the bundle allocating it.
  bool frontend_pool_allocation = false;
  /// Ops that differ only in addresses share one sdsc file.
  bool share_equal_sdscs = true;
  /// The bundles the body is cut into, in order; none: one. Of several the pool is always launch argument 0:
  /// what one leaves there the next finds in the same place.
  std::vector<BundlePart> parts;
};

struct Bundle {
  std::map<std::string, std::string> files;  ///< by path inside the compile directory

  friend bool operator==(const Bundle&, const Bundle&) = default;
};

/// Validates the kernel and writes its artifacts. Refusals name the op and the tensor; `Error::item` is its place in the
/// body.
Result<Bundle> write_bundle(const Kernel& kernel, const BundleOptions& options = {});

}  // namespace spyre
