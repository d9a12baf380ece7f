#pragma once

#include <filesystem>
#include <string_view>

#include "spyre/base/result.h"

namespace spyre {

/// Whose folder may be written to.
enum class Overwrite {
  kOurs,   ///< a new or an empty one, or one with our manifest
  kForce,  ///< any
};

/// A kind of folder that we write. One of it has a `manifest.json` with the `format` and a list of its `files`.
struct FolderKind {
  std::string_view format;  ///< `spyre-bundle`
  std::string_view word;    ///< what messages call it: `bundle`
  std::string_view hint;    ///< what to try instead of a folder that is not ours
  bool (*may_hold)(
      std::string_view);  ///< whether a path inside it is one that such a folder may have; `..` is none
  bool (*may_contain)(std::string_view);  ///< the same of folders inside it
};

/// The manifest's name.
inline constexpr const char* kManifestFile = "manifest.json";

/// Puts a folder in place that was written whole under its `staging_name`, manifest included. That is gone then, whatever
/// came of it.
///
/// A new folder appears by one rename: a reader finds the whole of it or nothing. In one that exists each file is put
/// in place by a rename, the manifest last, and files of the former one that the new one lacks are removed: those the
/// manifest lists, or, by force where there is none, those whose names only such a folder has. Nothing else in it is
/// touched.
///
/// Refused: a path that is no folder, and a folder with files in it that has no manifest of this kind.
Status publish_folder(const std::filesystem::path& staged, const std::filesystem::path& directory,
                      const FolderKind& kind, Overwrite overwrite = Overwrite::kOurs);

/// A name that nobody else uses, to write a folder under first: beside it, or inside one that exists, which may be all that
/// can be written to.
std::filesystem::path staging_name(const std::filesystem::path& directory);

}  // namespace spyre
