#pragma once

#include <filesystem>

#include "spyre/codegen/superdsc/bundle.h"

namespace spyre {

/// Whose folder a bundle may go to.
enum class Overwrite {
  kOurs,   ///< a new or an empty one, or one with our manifest
  kForce,  ///< any
};

/// Publishes a bundle as a directory, with a `manifest.json` that lists its files.
///
/// A new directory is written under another name and renamed: a reader finds the whole bundle or none of it.
/// In one that exists each file is put in place by a rename, the manifest last, and files of the former
/// bundle that the new one lacks are removed: those the manifest lists, or, by force where there is none,
/// those whose names only a bundle has. Nothing else in it is touched.
///
/// Refused: a path that is no directory, and a folder with files in it that has no manifest of ours.
Status save_bundle(const Bundle& bundle, const std::filesystem::path& directory,
                   Overwrite overwrite = Overwrite::kOurs);

}  // namespace spyre
