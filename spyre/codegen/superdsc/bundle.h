#pragma once

#include <filesystem>
#include <map>
#include <string>

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
/// docs/spec/superdsc.md walks through an example.
namespace spyre {

struct BundleOptions {
  Machine machine = spyre_card();
  /// The caller passes the pool as launch argument 0 instead of the bundle allocating it.
  bool frontend_pool_allocation = false;
  /// Ops that differ only in addresses share one sdsc file.
  bool share_equal_sdscs = true;
};

struct Bundle {
  std::map<std::string, std::string> files;  ///< by path inside the compile directory

  friend bool operator==(const Bundle&, const Bundle&) = default;
};

/// Validates the kernel and writes its artifacts. Refusals name the op and the tensor.
Result<Bundle> write_bundle(const Kernel& kernel, const BundleOptions& options = {});

/// Publishes a bundle as a directory. It is written beside its final name and renamed, so that a reader finds
/// the whole bundle or none of it; a bundle already there is replaced.
Status save_bundle(const Bundle& bundle, const std::filesystem::path& directory);

}  // namespace spyre
