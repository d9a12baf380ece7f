#pragma once

#include <filesystem>

#include "spyre/base/publish_folder.h"
#include "spyre/codegen/superdsc/bundle.h"

namespace spyre {

/// Publishes a bundle as a directory, with a `manifest.json` that lists its files, by the rules of publish_folder.
Status save_bundle(const Bundle& bundle, const std::filesystem::path& directory,
                   Overwrite overwrite = Overwrite::kOurs);

}  // namespace spyre
